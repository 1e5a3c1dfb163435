"""`--crawl-log`: one line per fetch, as Heritrix writes them."""

from __future__ import annotations

from pathlib import Path

from gossamer.sim.web.web import preset
from tests.e2e.program import crawl, fetched_urls
from tests.servers.web import RunningWeb


def test_every_fetch_has_its_line(tmp_path: Path) -> None:
    with RunningWeb(preset("small", pages=60, slow=0.0)) as web:
        options = ("--crawl-log", "--retry-wait", "0", "--max-wait", "0", "--scope", "any")
        summary = crawl(web, tmp_path / "c", 0, *options, seeds=web.seeds(1))
    lines = [line.split() for line in (tmp_path / "c" / "crawl.log").read_text().splitlines()]
    assert all(len(line) == 12 for line in lines)
    pages = [line for line in lines if line[4] != "P"]
    assert sorted(line[3] for line in lines if line[4] == "P") == sorted(fetched_urls(tmp_path / "c", kind="robots"))
    assert {line[3] for line in pages} <= {*fetched_urls(tmp_path / "c"), *fetched_urls(tmp_path / "c", kind="sitemap")}
    stored = [line for line in pages if line[1] == "200" and line[6].startswith("text/html")]
    assert len(stored) == summary["pages"]
    for line in stored:
        assert line[0].endswith("Z")
        assert line[9].startswith("sha1:")
        assert (line[4] == "-") == (line[5] == "-"), "only a seed has neither a path nor a page that it was found on"
        assert set(line[4]) <= set("-LRM")
    assert any(line[4].startswith("LL") for line in stored)
