"""What pages hold (H)."""

from __future__ import annotations

import json

from gossamer.model.records import UrlState
from tests.e2e.program import run
from tests.hostile.crawling import Aftermath


def found(after: Aftermath, name: str) -> set[str]:
    """Return the paths that were accepted at a host."""
    return {"/" + row.url.split("/", 3)[3] for row in after.rows(name)}


def test_h01_a_million_links(after: Aftermath) -> None:
    row = after.row("h01")
    assert (row.truncated, row.wire_bytes) == ("length", 5_000_000)
    assert len(after.rows("h01")) == 1001
    (capped,) = after.told("h01", "links_capped")
    assert capped["links"] > 15_000


def test_h02_deep_nesting(after: Aftermath) -> None:
    assert after.row("h02", "/found").outcome == "ok"


def test_h03_what_is_no_utf8_can_be_written(after: Aftermath) -> None:
    row = after.row("h03")
    assert row.title.endswith("end")
    assert "\ufffd" in row.title
    assert row.title.encode()
    assert "/ok" in found(after, "h03")


def test_h04_nul(after: Aftermath) -> None:
    assert "\0" not in after.row("h04").title
    assert "/ok" in found(after, "h04")
    assert not any("\0" in row.url or "/no" in row.url for row in after.rows("h04"))


def test_h05_utf16_that_says_utf8(after: Aftermath) -> None:
    assert after.row("h05").title == "wide"
    assert after.row("h05", "/found").outcome == "ok"


def test_h06_only_the_labels_of_the_web(after: Aftermath) -> None:
    for row in after.rows("h06"):
        assert row.charset in ("", "utf-8", "windows-1252", "x-user-defined"), row
    assert after.row("h06", "/1").title == "label 1"
    assert "/a" not in found(after, "h06")  # what +AGE- would be in UTF-7


def test_h07_only_http_is_followed(after: Aftermath) -> None:
    assert found(after, "h07") == {"/", "/ok"}


def test_h08_the_first_base_that_can_be_one(after: Aftermath) -> None:
    assert found(after, "h08") == {"/"}  # evil.example is out of scope
    assert after.find("http://evil.example/page") is None
    assert found(after, "h08b") == {"/", "/one/page"}
    assert found(after, "h08c") == {"/", "/page"}  # the first one counts, and says nothing


def test_h09_credentials_are_dropped(after: Aftermath) -> None:
    assert found(after, "h09") == {"/", "/a", "/b"}
    assert all(b"authorization" not in seen.head.lower() for seen in after.server.requests("h09"))
    for path in after.out.rglob("*.jsonl"):
        assert "hunter2" not in path.read_text("utf-8")
    assert not any("hunter2" in row.url for row in after.rows("h09"))


def test_h10_one_key_for_all_spellings_of_a_name(after: Aftermath) -> None:
    assert after.times_asked("xn--h10-dma", "/x") == 1
    assert found(after, "xn--h10-dma") == {"/", "/x"}


def test_h11_urls_too_long_are_dropped(after: Aftermath) -> None:
    assert found(after, "h11") == {"/", "/ok"}
    assert after.row("h11").outcome == "ok"


def test_h12_a_title_cannot_act_on_a_terminal(after: Aftermath) -> None:
    raw = [
        line for path in after.out.rglob("*.jsonl") for line in path.read_bytes().splitlines() if b"h12.test" in line
    ]
    assert raw
    assert not any(b"\x1b" in line or b"\x07" in line for line in raw)
    assert all(json.loads(line) for line in raw)
    shown = run("why", str(after.out), after.url("h12")).stdout
    assert "h12.test" in shown
    assert "\x1b" not in shown
    report = (after.out / "report.html").read_text("utf-8")
    assert "<script>alert(1)" not in report


def test_h13_binary_is_not_read_as_html(after: Aftermath) -> None:
    row = after.row("h13")
    assert row.wire_bytes == 5_000_000
    assert row.content_type != "text/html"


def test_h14_a_malformed_pdf(after: Aftermath) -> None:
    assert after.row("h14", "/after").outcome == "ok"
    assert after.row("h14", "/evil.pdf").state is UrlState.DONE
    assert after.archived("h14", "/evil.pdf") == []


def test_h15_soft_404(after: Aftermath) -> None:
    events = after.told("h15", "soft_404")
    assert events
    assert after.row("h15", "/real").outcome == "ok"
    assert not any(event["url"].endswith("/real") for event in events)
    probes = [seen for seen in after.server.requests("h15") if seen.path.endswith("-no-such-page")]
    assert len(probes) == 1


def test_h15_a_host_with_honest_errors_is_never_probed(after: Aftermath) -> None:
    probed = {seen.host for seen in after.server.seen if seen.path.endswith("-no-such-page")}
    assert probed <= {"h15.test", "w03.test", "t05.test", "t01.test"}, "all other hosts say something else on each page"


def test_h16_an_endless_camera(after: Aftermath) -> None:
    row = after.row("h16")
    assert row.outcome == "type_refused"
    assert after.archived("h16") == []
