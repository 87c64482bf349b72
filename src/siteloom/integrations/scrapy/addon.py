"""The Scrapy add-on, which adds Siteloom's middlewares to a project's crawlers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.integrations.scrapy.archive_pages import ARCHIVE_SETTING, ArchiveMiddleware
from siteloom.integrations.scrapy.items import ExtractionMiddleware

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

# Nearest to the spider, so that other middlewares see the items as if the spider had made them.
_EXTRACTION_PLACE = 1_100
# Nearest to the downloader, after Scrapy's cache at 900: there, bodies still match their headers, and
# redirects are still responses.
_ARCHIVE_PLACE = 950


class Siteloom:
    """`ADDONS = {"siteloom.integrations.scrapy.addon.Siteloom": 500}`."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the middlewares, except those that the project has placed itself."""
        settings.setdefault_in_component_priority_dict(
            "SPIDER_MIDDLEWARES", ExtractionMiddleware, _EXTRACTION_PLACE
        )
        if settings.get(ARCHIVE_SETTING):
            settings.setdefault_in_component_priority_dict(
                "DOWNLOADER_MIDDLEWARES", ArchiveMiddleware, _ARCHIVE_PLACE
            )
