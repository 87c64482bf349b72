"""Siteloom in Scrapy projects.

    ADDONS = {"siteloom.integrations.scrapy.addon.Siteloom": 500}

is all that `settings.py` needs: every page that matches a wrapper gives items.
"""

from siteloom.integrations.scrapy.addon import Siteloom
from siteloom.integrations.scrapy.archive_pages import ArchiveMiddleware
from siteloom.integrations.scrapy.items import ExtractionMiddleware, SiteloomItem

__all__ = ["ArchiveMiddleware", "ExtractionMiddleware", "Siteloom", "SiteloomItem"]
