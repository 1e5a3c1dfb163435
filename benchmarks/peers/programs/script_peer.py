"""A tuned script: aiohttp, uvloop, Lexbor, 16 requests at once, a set of what it has seen. It stores nothing."""

import asyncio
import sys
from urllib.parse import urljoin, urlsplit

import aiohttp
import uvloop
from selectolax.lexbor import LexborHTMLParser

CONNECTIONS = 16


async def work(session: aiohttp.ClientSession, queue: asyncio.Queue[str], seen: set[str], host: str) -> None:
    while True:
        url = await queue.get()
        try:
            async with session.get(url, allow_redirects=True) as response:
                if response.status == 200 and response.content_type == "text/html":
                    for link in links_of(await response.read(), url, host):
                        if link not in seen:
                            seen.add(link)
                            queue.put_nowait(link)
        except aiohttp.ClientError:
            pass
        finally:
            queue.task_done()


def links_of(content: bytes, url: str, host: str) -> set[str]:
    hrefs = {(node.attributes.get("href") or "").partition("#")[0] for node in LexborHTMLParser(content).css("a[href]")}
    links = {urljoin(url, href) for href in hrefs if href}
    return {link for link in links if urlsplit(link).netloc == host and link.startswith("http")}


async def main() -> None:
    start = sys.argv[1]
    queue: asyncio.Queue[str] = asyncio.Queue()
    queue.put_nowait(start)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONNECTIONS)) as session:
        host = urlsplit(start).netloc
        seen = {start}
        workers = [asyncio.create_task(work(session, queue, seen, host)) for _ in range(CONNECTIONS)]
        await queue.join()
        for worker in workers:
            worker.cancel()


uvloop.run(main())
