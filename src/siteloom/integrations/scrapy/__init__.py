"""Siteloom in Scrapy projects.

    ADDONS = {"siteloom.integrations.scrapy.Siteloom": 500}

is all that `settings.py` needs: every page that matches a wrapper gives items.
"""

from siteloom.integrations.scrapy.addon import Siteloom
from siteloom.integrations.scrapy.archiving import ArchiveMiddleware
from siteloom.integrations.scrapy.extracting import ExtractionMiddleware
from siteloom.integrations.scrapy.items import SiteloomItem

__all__ = ["ArchiveMiddleware", "ExtractionMiddleware", "Siteloom", "SiteloomItem"]
