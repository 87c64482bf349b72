"""Wrappers as XSLT, XPath in JSON, Scrapy spiders and web-poet page objects."""
