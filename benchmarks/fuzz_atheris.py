"""Fuzzing by coverage, where atheris is installed: python benchmarks/fuzz_atheris.py [-max_total_time=60]

Without it this says so and ends well: `HYPOTHESIS_PROFILE=search pytest tests/fuzz` needs nothing more.
"""

from __future__ import annotations

import importlib
import sys


def one_input(data: bytes) -> None:
    from gossamer.core.robots.rules import parse_robots
    from gossamer.core.url.forms import canonical, links_from
    from gossamer.parse.feeds.feeds import parse_feed
    from gossamer.parse.feeds.sitemap import parse_sitemap
    from gossamer.parse.html.html import parse_html
    from gossamer.parse.pdf.pdf import pdf_links

    text = data.decode("latin-1")
    canonical(text, "http://a.test/")
    parse_robots(data, "gossamer").is_allowed("/" + text)
    links_from("http://a.test/", parse_html(data, text[:10]).hrefs)
    parse_sitemap(data)
    parse_feed(b"<rss>" + data, "http://a.test/", 0.0)
    pdf_links(data)


def main() -> None:
    try:
        atheris = importlib.import_module("atheris")
    except ImportError:
        print("atheris is not installed; HYPOTHESIS_PROFILE=search python -m pytest tests/fuzz does without it")
        return
    atheris.instrument_all()
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
