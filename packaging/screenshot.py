"""Makes docs/dashboard.png: the dashboard of a crawl of the synthetic web, as Chromium draws it.

    make screenshot        # needs chromium and chromedriver (make engines), takes a minute

The picture is of what runs: a crawl, its dashboard, a browser.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import chdir
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.e2e.dashboard_crawl import PageCrawl  # noqa: E402
from tests.servers import engines  # noqa: E402
from tests.servers.browser import running_browser  # noqa: E402

from gossamer.sim.running import RunningWeb  # noqa: E402
from gossamer.sim.web.web import preset  # noqa: E402

PICTURE = ROOT / "docs" / "dashboard.png"
WIDTH, HEIGHT = 1380, 608
WEB = preset("rough", seed=7, domains=60, hosts=90, pages=9000, slow=0.5, slow_s=0.3, closed=0.02, erring=0.02)
SHOWN_AT = 3000  # requests: the charts have a shape by then


def main() -> None:
    """Crawl, wait until there is something to see, and take the picture."""
    engines.allow("chromium")
    with tempfile.TemporaryDirectory() as folder, chdir(folder), RunningWeb(WEB) as web:
        crawl = PageCrawl(web, Path("crawls/example"), "--max-pages", str(WEB.pages), pace_ms=500)
        try:
            with running_browser(Path(folder), WIDTH, HEIGHT) as browser:
                browser.resize(WIDTH, HEIGHT)
                browser.cdp("Emulation.setScrollbarsHidden", {"hidden": True})
                browser.go(crawl.address)
                browser.wait(lambda: len(web.log()) >= SHOWN_AT, "enough pages", within_s=300)
                browser.screenshot(PICTURE)
        finally:
            crawl.process.terminate()
            crawl.end()
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
