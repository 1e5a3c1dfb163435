"""The API of the dashboard: what it answers about a crawl that has ended."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import get_args
from urllib.parse import quote

import msgspec
import pytest
from msgspec.structs import replace

from gossamer.cli.main import main
from gossamer.core.ledger.tables import QUARANTINES
from gossamer.core.traps.quarantine import Quarantine
from gossamer.core.url.identity import host_id
from gossamer.model.commands import ChangeSetting, OperatorCommand, PauseCrawl, ResumeCrawl, UnblockNames
from gossamer.model.errors import UsageError
from gossamer.model.figures import Figures
from gossamer.model.records import FetchKind, HostRecord, Source, UrlRecord, UrlState
from gossamer.reading.folder import CrawlReader
from gossamer.reading.outlook import Outlook
from gossamer.web.hosts import HostIndex, Sort
from tests.e2e.program import run
from tests.reading.folders import Crawled, finished, ledger_of, owned, small_web, stopped
from tests.web.serving import Served, served

__all__ = ["finished", "small_web", "stopped"]


@pytest.fixture(scope="module")
def rows(finished: Crawled) -> dict[str, UrlRecord]:
    """The catalog, read before the server has it open."""
    return finished.rows()


@pytest.fixture(scope="module")
def server(finished: Crawled, rows: dict[str, UrlRecord]) -> Iterator[Served]:
    assert rows
    with served(finished.path) as server:
        yield server


def test_the_status_has_the_summary_the_state_and_all_figures(server: Served, finished: Crawled) -> None:
    status = server.ask("/api/status").json
    summary = msgspec.to_builtins(finished.summary)
    assert {name: status[name] for name in summary} == summary
    assert (status["state"], status["is_running"], status["can_control"]) == ("finished", False, False)
    assert set(status["figures"]) == set(Figures.__struct_fields__)


def test_the_status_says_what_was_left_out_and_by_which_rule(finished: Crawled, tmp_path: Path) -> None:
    path = finished.copied(tmp_path / "copy")
    with ledger_of(path) as ledger:
        state = ledger.crawl_state()
        assert state is not None
        assert state.figures is not None
        totals = replace(state.totals, held={"first_pass": 7}, evicted=5, crowded_hosts=3, robots_cut=2)
        ledger.put_crawl_state(replace(state, totals=totals, figures=replace(state.figures, totals=totals)))
    with served(path) as server:
        status = server.ask("/api/status").json
    assert status["reason"].startswith("all else was fetched, but 7 URLs held back may be pages")
    assert [line.split(":")[0] for line in status["left_out"]] == ["held back", "evicted", "hosts", "robots.txt"]
    for part in ("7 ", "--max-queued", "--max-hosts-per-address", "2 such files"):
        assert part in " ".join(status["left_out"])


def test_hosts_are_sorted_searched_and_paged_without_a_gap(server: Served, finished: Crawled) -> None:
    whole = server.ask("/api/hosts?sort=pages&limit=500").json
    names = [host["name"] for host in whole["hosts"]]
    assert sum(host["pages"] for host in whole["hosts"]) == finished.summary.pages
    assert [host["pages"] for host in whole["hosts"]] == sorted((h["pages"] for h in whole["hosts"]), reverse=True)
    paged, cursor = [], ""
    while True:
        part = server.ask(f"/api/hosts?sort=pages&limit=3&cursor={quote(cursor)}").json
        paged += [host["name"] for host in part["hosts"]]
        cursor = part["cursor"]
        if not cursor:
            break
    assert paged == names
    found = server.ask(f"/api/hosts?sort=name&q={names[0][2:9].upper()}").json
    assert names[0] in [host["name"] for host in found["hosts"]]
    assert found["matching"] == len(found["hosts"])
    assert [host["name"] for host in found["hosts"]] == sorted(host["name"] for host in found["hosts"])


def test_the_list_of_hosts_has_the_states_that_the_status_counts(stopped: Crawled, tmp_path: Path) -> None:
    path = stopped.copied(tmp_path / "copy")
    settings = path / "crawl.toml"
    settings.write_text("max-pages-per-host = 1\n" + settings.read_text())
    with ledger_of(path) as ledger:
        blocked = min(ledger.hosts(), key=lambda host: host.queued)
        blocked.is_blocked = True
        ledger.put_host(blocked)
    with CrawlReader(path) as crawl:
        counted = crawl.hosts().states
    with served(path) as server:
        listed = server.ask("/api/hosts?limit=500").json["hosts"]
        over = server.ask("/api/hosts?state=over_budget").json["hosts"]
        refused = server.ask("/api/hosts?state=blocked").json["hosts"]
        one = server.ask(f"/api/hosts/{over[0]['name']}").json["host"]
    assert Counter(host["state"] for host in listed) == Counter({name: n for name, n in counted.items() if n})
    assert len(over) == counted["over_budget"] > 0
    assert [host["name"] for host in refused] == [blocked.name]
    assert (one["place"], one["time_left_s"]) == ("over_budget", 0)


def test_a_host_has_its_pace_its_robots_as_parsed_and_every_request(server: Served) -> None:
    hosts = server.ask("/api/hosts").json["hosts"]
    host, kinds = hosts[0], set()
    for each in hosts:
        answer = server.ask(f"/api/hosts/{each['name']}").json
        assert (answer["host"]["pages"], answer["host"]["place"]) == (each["pages"], each["state"])
        for one in answer["robots"]:
            lines = one["text"].splitlines()
            assert all(rule["text"] == lines[rule["line"] - 1].strip() for rule in one["rules"])
            kinds |= {rule["allows"] for rule in one["rules"]}
    assert False in kinds
    requests = server.ask(f"/api/hosts/{host['name']}/requests?limit=2000").json
    assert requests["made"] == len(requests["requests"]) == host["fetches"]
    times = [request["at"] for request in requests["requests"]]
    assert times == sorted(times, reverse=True)
    assert len(server.ask(f"/api/hosts/{host['name']}/requests?limit=2").json["requests"]) == 2


def test_why_has_the_same_answer_as_the_verb(server: Served, finished: Crawled, rows: dict[str, UrlRecord]) -> None:
    url = max(rows.values(), key=lambda row: row.depth).url
    life = server.ask(f"/api/why?url={quote(url, safe='')}").json["life"]
    assert life == json.loads(run("why", str(finished.path), url, "--json").stdout)
    assert life["ancestors"]
    assert not server.ask("/api/why?url=https://never.example/").json["life"]["is_known"]


def test_pages_are_found_by_url_and_title_and_shown_as_archived(server: Served, rows: dict[str, UrlRecord]) -> None:
    row = next(row for row in rows.values() if row.title and row.content_type == "text/html")
    found = server.ask(f"/api/pages?limit=500&q={quote(row.title)}").json["pages"]
    line = next(page for page in found if page["url"] == row.url)
    page = server.ask(f"/api/pages/{line['id']}").json
    assert page["http_status"] == 200
    assert "content-type" in [header["name"] for header in page["headers"]]
    assert len(page["text"]) > 100
    copy = server.ask(f"/api/pages/{line['id']}/copy")
    assert row.title.encode() in copy.body
    assert copy.headers["content-security-policy"].startswith("sandbox; default-src 'none'; ")
    assert "allow-" not in copy.headers["content-security-policy"]
    assert server.ask(f"/api/pages/{'0' * 32}").status == 404
    assert server.ask("/api/pages/xyz/copy").status == 400


def test_all_pages_are_listed_part_by_part(server: Served, finished: Crawled) -> None:
    urls, cursor = [], ""
    while True:
        part = server.ask(f"/api/pages?limit=50&cursor={cursor}").json
        urls += [page["url"] for page in part["pages"]]
        cursor = part["cursor"]
        if not cursor:
            break
    assert len(urls) == len(set(urls)) == finished.summary.pages


def test_dead_letters_and_duplicates_are_those_of_the_catalog(
    server: Served, finished: Crawled, rows: dict[str, UrlRecord]
) -> None:
    dead = server.ask("/api/dead?limit=500").json["pages"]
    assert sorted(page["url"] for page in dead) == sorted(
        row.url for row in rows.values() if row.state is UrlState.DEAD
    )
    copies = server.ask("/api/duplicates?limit=500").json["pages"]
    assert len(copies) == finished.summary.duplicates + finished.summary.near_duplicates > 0
    assert all(page["same_as"] for page in copies)
    exact = server.ask("/api/duplicates?limit=500&kind=exact").json["pages"]
    assert len(exact) == finished.summary.duplicates


def test_dead_sitemaps_and_probes_are_listed_as_retry_lists_them(
    finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = finished.copied(tmp_path / "copy")
    with ledger_of(path) as ledger:
        chosen = [(key, row) for key, row in ledger.urls() if row.state is UrlState.DEAD][:2]
        chosen[0][1].kind, chosen[1][1].source = FetchKind.SITEMAP, Source.PROBE
        for key, row in chosen:
            ledger.amend(key, row)
    with served(path) as server:
        dead = server.ask("/api/dead?limit=500").json["pages"]
        assert server.ask("/api/dead?outcome=timeout&limit=500").json["pages"] == [
            page for page in dead if page["outcome"] == "timeout"
        ]
    capsys.readouterr()
    assert main(["retry", str(path), "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == len(dead) > 2
    for page in dead:
        mark = "" if page["purpose"] == "page" else f" [{page['purpose']}]"
        assert any(f" {page['url']}{mark}" in line for line in listed)
    assert Counter(page["purpose"] for page in dead) == {"page": len(dead) - 2, "sitemap": 1, "probe": 1}


def test_settings_that_were_filled_in_when_the_crawl_began_are_not_said_to_be_changed(server: Served) -> None:
    settings = {one["key"]: one for one in server.ask("/api/settings").json["settings"]}
    assert (settings["max-pages"]["default"], settings["scope"]["default"]) == (10_000, "domain")
    assert settings["max-time"]["default"] is None


def test_traps_are_listed(finished: Crawled, tmp_path: Path) -> None:
    path = finished.copied(tmp_path / "copy")
    with ledger_of(path) as ledger:
        ledger.put_record(QUARANTINES, Quarantine("a.test", "/cal/#", 1.0, 50, 0, ["http://a.test/cal/1"], held=7))
    with served(path) as server:
        (trap,) = server.ask("/api/traps").json["traps"]
    assert (trap["name"], trap["held"], trap["is_released"]) == ("a.test/cal/#", 7, False)


def test_settings_are_shown_without_passwords(finished: Crawled, tmp_path: Path) -> None:
    path = finished.copied(tmp_path / "copy")
    settings = (path / "crawl.toml").read_text("utf-8")
    secret = 'store = ["warc", "mongodb://me:secret@127.0.0.1:27017/crawl"]'
    settings = settings.replace("catalog = []", 'catalog = ["postgresql://me:secret@127.0.0.1/crawl"]')
    (path / "crawl.toml").write_text(settings.replace('store = ["warc"]', secret), "utf-8")
    with served(path) as server:
        reply = server.ask("/api/settings")
    assert b"secret" not in reply.body
    lines = {line["key"]: line for line in reply.json["settings"]}
    assert "mongodb://me" in lines["store"]["value"][1]
    assert "postgresql://me" in lines["catalog"]["value"][0]
    assert (lines["politeness-ms"]["value"], lines["politeness-ms"]["default"]) == (20, 1000)
    assert lines["max-pages"]["is_changeable"]
    assert not lines["scope"]["is_changeable"]


def test_no_value_of_a_query_is_shown_if_queries_are_masked(
    finished: Crawled, rows: dict[str, UrlRecord], tmp_path: Path
) -> None:
    path = finished.copied(tmp_path / "copy")
    settings = (path / "crawl.toml").read_text("utf-8")
    (path / "crawl.toml").write_text(settings.replace("mask-queries = false", "mask-queries = true"), "utf-8")
    url, row = next((url, row) for url, row in rows.items() if "?" in url and row.archived and row.title)
    with CrawlReader(path) as crawl:
        key = crawl.ledger.url_id(url)
    value = row.url.partition("?")[2].rpartition("=")[2]
    with served(path) as server:
        (page,) = [one for one in server.ask("/api/pages?limit=500").json["pages"] if one["id"] == key.hex()]
        assert page["url"].endswith("=*")
        why = server.ask(f"/api/pages/{key.hex()}/why").json["life"]
    assert why["is_known"]
    assert why["url"].endswith("=*")
    assert f"={value}" not in json.dumps(why["url"])


def test_the_status_and_the_list_of_hosts_know_the_same_hosts(server: Served) -> None:
    status = server.ask("/api/status").json
    assert status["hosts_known"] == server.ask("/api/hosts").json["known"] > 0
    assert status["hosts_known"] >= status["unique_hosts"]


def test_the_history_of_a_finished_crawl_is_that_of_its_report(server: Served, finished: Crawled) -> None:
    points = server.ask("/api/history").json["points"]
    assert points[-1]["pages"] == finished.summary.pages
    times = [point["t_s"] for point in points]
    assert times == sorted(times)


@pytest.mark.parametrize("report", [b"", b"{", b'{"timeline": [{"t_s": 1}]}'])
def test_a_report_that_cannot_be_read_leaves_the_history_to_the_events(
    finished: Crawled, tmp_path: Path, report: bytes
) -> None:
    path = finished.copied(tmp_path / "copy")
    (path / "report.json").write_bytes(report)
    with served(path) as server:
        reply = server.ask("/api/history")
    assert (reply.status, bool(reply.json["points"])) == (200, True)


def test_a_crawl_that_does_not_run_is_not_paused_but_told_what_is_for_its_next_run(server: Served) -> None:
    for name in ("pause", "resume", "stop", "retry"):
        refused = server.command(name)
        assert refused.status == 409
        assert "does not run" in refused.json["error"]
    assert "gossamer retry" in server.command("retry").json["error"]
    assert "gossamer traps" in server.command("release", pattern="/x").json["error"]
    for name, fields in (
        ("set", {"key": "max-pages", "value": 5}),
        ("block", {"names": ["a.test"]}),
        ("unblock", {"names": ["a.test"]}),
        ("add", {"seeds": ["http://a.test/"]}),
        ("pace", {"pattern": "*", "delay": 2}),
    ):
        assert server.command(name, **fields).status == 200, name


@pytest.mark.parametrize("url", ["foo", "no%20url", "a/b.html", "%20"])
def test_what_is_no_url_has_no_history(server: Served, url: str) -> None:
    refused = server.ask(f"/api/why?url={url}")
    assert refused.status == 400
    assert "expected a URL" in refused.json["error"]


@pytest.mark.parametrize("url", ["example.org", "localhost/x", "http://foo/", "127.0.0.1:80/x"])
def test_a_url_or_a_domain_has_a_history_whether_it_is_known_or_not(server: Served, url: str) -> None:
    assert server.ask(f"/api/why?url={url}").status == 200


def test_a_read_only_page_gives_no_commands(stopped: Crawled) -> None:
    with served(stopped.path, is_read_only=True) as server, owned(stopped.path):
        refused = server.command("pause")
        assert (refused.status, refused.headers["allow"]) == (405, "")
        assert "/api/control" not in server.ask("/api/openapi.json").json["paths"]
        status = server.ask("/api/status").json
        assert (status["is_running"], status["can_control"], status["is_read_only"]) == (True, False, True)


def test_a_command_reaches_the_crawl_that_runs(stopped: Crawled) -> None:
    given: list[OperatorCommand] = []
    ways: list[str] = []

    def obey(command: OperatorCommand, how: str) -> str:
        given.append(command)
        ways.append(how.partition(", ")[2])
        return "paused"

    with served(stopped.path, obey=obey) as server, owned(stopped.path):
        assert server.command("pause").json == {"text": "paused"}
        body, kind = b'{"command": "pause"}', {"Content-Type": "application/json"}
        sent = server.ask("/api/control", method="POST", body=body, headers={**kind, "Origin": f"http://{server.host}"})
        assert (sent.status, ways) == (200, ["over the API", "on the dashboard"])
        assert server.command("add", seeds=[]).json["error"] == "seeds: expected at least one URL or domain"
        assert server.command("add", seeds=[" "]).status == 400
        private = server.command("add", seeds=["https://a.test/", "http://10.1.2.3/"])
        assert private.status == 403
        assert "10.1.2.3 is in 10.0.0.0/8" in private.json["error"]
        wrong: list[object] = [{"command": "explode"}, {"command": "block"}, {"command": "pause", "more": 1}, [], None]
        for bad in wrong:
            reply = server.ask(
                "/api/control",
                method="POST",
                body=json.dumps(bad).encode(),
                headers={"Content-Type": "application/json"},
            )
            assert reply.status == 400, bad
            assert "\n" not in reply.json["error"]
    assert given == [PauseCrawl(), PauseCrawl()]


def test_the_crawl_itself_decides_whether_it_can_obey_however_old_the_figures_are(stopped: Crawled) -> None:
    is_paused = False

    def obey(command: OperatorCommand, _how: str) -> str:
        nonlocal is_paused
        if isinstance(command, ResumeCrawl) and not is_paused:
            raise UsageError("the crawl is not paused: it runs")
        if isinstance(command, ChangeSetting):
            raise UsageError("max-pages: expected a whole number")
        if isinstance(command, UnblockNames):
            raise UsageError("never.test is not blocked")
        is_paused = isinstance(command, PauseCrawl)
        return "done"

    with served(stopped.path, obey=obey) as server, owned(stopped.path):
        assert server.ask("/api/status").json["state"] != "paused"
        assert [server.command(name).status for name in ("pause", "resume", "pause", "resume")] == [200] * 4
        refused = server.command("resume")
        assert (refused.status, refused.json["error"]) == (409, "the crawl is not paused: it runs")
        assert server.command("set", key="max-pages", value="many").status == 400, "no state makes it right"
        assert server.command("unblock", names=["never.test"]).status == 409, "right if it were blocked"


def test_a_crawl_that_is_just_ending_takes_no_commands(stopped: Crawled) -> None:
    with served(stopped.path, obey=None) as server, owned(stopped.path):  # nobody listens
        refused = server.command("pause")
    assert refused.status == 409
    assert refused.json["error"].endswith("the crawl begins or ends, and takes no commands now; try again")


def test_events_are_figures_every_second_and_the_last_fetches(server: Served) -> None:
    import socket

    name, _, port = server.host.rpartition(":")
    with socket.create_connection((name, int(port)), 20) as connection:
        head = (
            f"GET /api/events?show=all HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        )
        connection.sendall(head.encode())
        data = b""
        while data.count(b"event: status") < 2 or b"event: events" not in data:
            part = connection.recv(1 << 16)
            assert part
            data += part
    line = next(line for line in data.split(b"\n") if line.startswith(b'data: {"events"'))
    events = json.loads(line.removeprefix(b"data: "))["events"]
    assert any(event["event"] == "fetch_ok" and event["status"] == 200 for event in events)
    assert not any(event["event"] in ("excluded_by_rule", "heartbeat") for event in events)


def test_a_folder_that_has_vanished_is_one_line_and_not_a_crash(finished: Crawled, tmp_path: Path) -> None:
    path = finished.copied(tmp_path / "copy")
    (path / "state" / "data.mdb").write_bytes(b"")
    with served(path) as server:
        for route in ("/api/status", "/api/hosts", "/api/traps", "/readyz"):
            reply = server.ask(route)
            assert reply.status == 503, route
            assert b"\n" not in reply.body.strip()
        assert server.ask("/healthz").status == 200


def test_the_index_of_hosts_is_small() -> None:
    rows = [
        msgspec.json.encode(HostRecord(f"host-{number:06d}.test", "test", pages=number)) for number in range(20_000)
    ]
    decode = msgspec.json.Decoder(HostRecord).decode
    tracemalloc.start()
    try:
        copy = HostIndex(map(decode, rows), Outlook(0.0), 0.0, 0.0)
        for sort in get_args(Sort):
            copy.ordered(sort)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / len(rows) < 250


def test_a_page_of_a_hundred_thousand_hosts_is_quick(finished: Crawled, tmp_path: Path) -> None:
    path = finished.copied(tmp_path / "copy")
    with ledger_of(path) as ledger:
        for number in range(100_000):
            name = f"host-{number:06d}.test"
            ledger.put_host(HostRecord(name, name, pages=number % 1000), host_id(name))
    with served(path) as server:
        first = server.ask("/api/hosts?limit=50").json
        assert first["known"] > 100_000
        found = server.ask("/api/hosts?q=host-0999&sort=name").json
        assert found["matching"] == 100
        assert found["age_s"] < 60, "drawn from the same copy"
        assert [host["name"] for host in found["hosts"]][:2] == ["host-099900.test", "host-099901.test"]
