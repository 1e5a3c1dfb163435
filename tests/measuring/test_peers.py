"""What the comparison with other crawlers is made of: tables, plot, the walk over pages, the measuring of a program."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.growth import Stage, judge
from benchmarks.peers.figures import bar_plot, markdown_table, text_table
from benchmarks.peers.measure import run_pinned
from benchmarks.peers.pages import START, page_name, reachable_pages

HEAD = ["rival", "ms"]
ROWS = [["ours", "0.50"], ["another|one", "12.00"]]


def test_a_text_table_is_aligned() -> None:
    assert text_table(HEAD, ROWS).splitlines() == [
        "rival           ms",
        "-----------  -----",
        "ours          0.50",
        "another|one  12.00",
    ]


def test_markdown_cells_keep_their_bars_to_themselves() -> None:
    assert markdown_table(HEAD, ROWS).splitlines()[-1] == r"| another\|one | 12.00 |"


def test_a_plot_is_well_formed_and_its_bars_are_to_scale() -> None:
    root = ElementTree.fromstring(bar_plot("a <title>", [("ours", 1.0, "1 ms"), ("b & c", 4.0, "4 ms")], ours="ours"))
    bars = [element for element in root if element.tag.endswith("rect")]
    assert [bar.get("class") for bar in bars] == ["o", "b"]
    assert float(bars[1].get("width", "0")) == 4 * float(bars[0].get("width", "0"))


def test_a_plot_of_nothing_is_a_plot() -> None:
    assert ElementTree.fromstring(bar_plot("nothing", [], ours="ours")).tag.endswith("svg")


def test_the_walk_finds_what_links_lead_to(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    pages = {
        START: '<a href="/deep/#top">in</a><a href="gone.html">gone</a><a href="http://other.test/x.html">out</a>',
        "/deep/index.html": '<a href="../last%20one.html?q=1">on</a><a href="picture.png">no page</a>',
        "/last one.html": "<p>the end",
        "/alone.html": "nobody links here",
    }
    for name, text in pages.items():
        (tmp_path / name[1:]).write_text(text, "utf-8")
    assert reachable_pages(tmp_path).keys() == pages.keys() - {"/alone.html"}


def test_a_folder_is_its_index() -> None:
    assert page_name("/a/") == page_name("/a/index.html")


def test_a_program_is_measured(tmp_path: Path) -> None:
    code = "import time\nkept = bytearray(50_000_000)\nwhile time.process_time() < 0.4: pass\nprint('done')"
    taken = run_pinned([sys.executable, "-c", code], tmp_path)
    assert taken.is_good
    assert taken.output == "done\n"
    assert 0.3 < taken.cpu_s < 2
    assert taken.peak_bytes > 50_000_000


def test_a_program_that_fails_says_why(tmp_path: Path) -> None:
    taken = run_pinned([sys.executable, "-c", "raise SystemExit('no such thing')"], tmp_path)
    assert not taken.is_good
    assert "no such thing" in taken.output


def test_a_program_that_does_not_end_is_ended(tmp_path: Path) -> None:
    assert not run_pinned([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, max_s=0.5).is_good


def test_growth_is_judged_by_all_its_limits() -> None:
    few = Stage(10_000, 1.0, 0.1, 50_000_000, 1000)
    assert judge(few, Stage(3_010_000, 1.1, 1.0, 100_000_000, 1000))
    assert not judge(few, Stage(3_010_000, 1.2, 1.0, 100_000_000, 1000))
    assert not judge(few, Stage(3_010_000, 1.1, 1.0, 150_000_000, 1000))
    assert not judge(few, Stage(10_000_000, 1.1, 1.0, 800_000_000, 1000))
