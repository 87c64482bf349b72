"""The add-on: it puts what Siteloom does into the chains of a project's crawler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.integrations.scrapy.archive_pages import ARCHIVE_SETTING, ArchiveMiddleware
from siteloom.integrations.scrapy.items import ExtractionMiddleware

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

# Nearest to the spider: whatever else looks at items sees these as if the spider had made them.
_EXTRACTION_PLACE = 1_100
# Nearest to the downloader, behind Scrapy's cache at 900: there, bodies are still as the headers say, and
# redirects are still answers.
_ARCHIVE_PLACE = 950


class Siteloom:
    """`ADDONS = {"siteloom.integrations.scrapy.addon.Siteloom": 500}`."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the middlewares, but leave those where they are that the project has placed itself."""
        settings.setdefault_in_component_priority_dict(
            "SPIDER_MIDDLEWARES", ExtractionMiddleware, _EXTRACTION_PLACE
        )
        if settings.get(ARCHIVE_SETTING):
            settings.setdefault_in_component_priority_dict(
                "DOWNLOADER_MIDDLEWARES", ArchiveMiddleware, _ARCHIVE_PLACE
            )
