"""Scrapy, set up for speed: follow every link within the host, an item with URL and title a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

START = sys.argv[1]


class DocumentationSpider(scrapy.Spider):
    name = "documentation"
    start_urls = [START]  # noqa: RUF012 - Scrapy's way
    links = LinkExtractor(allow_domains=[urlsplit(START).netloc])

    def parse(self, response: scrapy.http.Response) -> Iterator[dict[str, str | None] | scrapy.Request]:
        if not isinstance(response, scrapy.http.HtmlResponse):
            return
        yield {"url": response.url, "title": response.css("title::text").get()}
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)


process = CrawlerProcess(
    {
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 16,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "DOWNLOAD_DELAY": 0,
        "AUTOTHROTTLE_ENABLED": False,
        "COOKIES_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_ENABLED": False,
        "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    }
)
process.crawl(DocumentationSpider)
process.start()
