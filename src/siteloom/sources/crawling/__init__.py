"""Fetching pages from the web with Scrapy, in a process of its own."""
