"""Crawlee with its Parsel crawler, everything in memory: enqueue every link within the host, an item a page."""

import asyncio
import logging
import sys

import uvloop
from crawlee import ConcurrencySettings, service_locator
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

logging.disable(logging.CRITICAL)


async def main() -> None:
    service_locator.set_storage_client(MemoryStorageClient())
    crawler = ParselCrawler(
        concurrency_settings=ConcurrencySettings(min_concurrency=16, max_concurrency=16, desired_concurrency=16),
        respect_robots_txt_file=True,
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def handle(context: ParselCrawlingContext) -> None:
        await context.push_data({"url": context.request.url, "title": context.selector.css("title::text").get()})
        await context.enqueue_links(strategy="same-hostname")

    await crawler.run([sys.argv[1]])


asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
asyncio.run(main())
