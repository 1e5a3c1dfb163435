"""Documents in a topic of a real Kafka: a reader rebuilds exactly the pages of the crawl, over kills and outages."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.handover.export.stored import is_page
from gossamer.reading.folder import CrawlReader
from gossamer.sim.web.web import preset
from tests.e2e.program import beside, crawl_options, kill_at_each, run, until
from tests.e2e.test_cluster import PLAN, Nodes
from tests.servers import engines
from tests.servers.kafka import KafkaServer, running_kafka, shared_kafka
from tests.servers.redis import free_port, running
from tests.servers.topics import messages_in, new_topic, read_topic
from tests.servers.web import RunningWeb

PACE_MS = 20


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", pages=130, slow=0.0)) as web:
        yield web


@pytest.fixture(scope="module", params=[engines.param("kafka")])
def kafka() -> KafkaServer:
    return shared_kafka()


def command(web: RunningWeb, out: Path, url: str, *more: str) -> list[str]:
    return ["crawl", *web.seeds(), *crawl_options(web, out, PACE_MS), "--feed", url, *more]


def check_whole(url: str, out: Path) -> None:
    """Check that a reader of the topic has the documents that the crawl exports, and no others."""
    found = read_topic(url)
    exported = [json.loads(line) for line in run("export", str(out), "--format", "jsonl").stdout.splitlines()]
    with CrawlReader(out) as crawl:
        rows = [row for _, row in crawl.ledger.urls()]
    pages = {row.url for row in rows if is_page(row)}
    assert {url for url, document in found.items() if document is not None} == pages
    assert {document["url"] for document in exported} == pages
    assert len(pages) > 50
    for document in exported:
        assert found[document["url"]] == document
    gone = {row.url for row in rows if row.status in {404, 410} and row.source != 5 and row.kind == 0}
    assert {url for url, document in found.items() if document is None} == gone
    assert gone


def test_a_reader_rebuilds_the_pages_of_a_crawl(web: RunningWeb, kafka: KafkaServer, tmp_path: Path) -> None:
    out, url = tmp_path / "out", new_topic(kafka)
    done = run(*command(web, out, url, "--workers", "2"))
    assert done.returncode == 0, done.stderr
    check_whole(url, out)
    assert len(messages_in(url)) == len(read_topic(url)), "nothing was sent twice"


@pytest.mark.parametrize(
    ("workers", "deaths"),
    [
        ("1", ["in_commit:kill:2", "in_recovery:kill:3", "in_feed:kill:2"]),
        ("2", ["in_feed:kill:1", "before_commit:kill:1", "in_feed:kill:2"]),
    ],
)
def test_a_crawl_that_is_killed_and_resumed_has_sent_everything(
    web: RunningWeb, kafka: KafkaServer, tmp_path: Path, workers: str, deaths: list[str]
) -> None:
    out, url = tmp_path / "out", new_topic(kafka)
    arguments = command(web, out, url, "--workers", workers)
    kill_at_each(arguments, deaths)
    done = run("resume", str(out), "--json")
    assert done.returncode == 0, done.stderr
    check_whole(url, out)


def test_the_ledger_has_nothing_that_the_brokers_have_not_confirmed(
    web: RunningWeb, kafka: KafkaServer, tmp_path: Path
) -> None:
    out, url = tmp_path / "out", new_topic(kafka)
    arguments = command(web, out, url)
    kill_at_each(arguments, ["in_feed:kill:1"])  # before the first message
    assert messages_in(url) == []
    with CrawlReader(out) as crawl:
        assert crawl.ledger.last_change() == 0
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    check_whole(url, out)


@pytest.mark.engine("kafka")
def test_a_broker_that_is_away_pauses_crawl_and_feed_and_nothing_is_lost(web: RunningWeb, tmp_path: Path) -> None:
    shared_kafka()  # or skip
    out = tmp_path / "out"
    with running_kafka(tmp_path / "broker") as own:
        url, copy = new_topic(own), new_topic(own)
        with beside(*command(web, out, url, "-vv")) as process:
            until(process, "/p/")
            own.stop()
            warning = until(process, "fetching is paused")
            assert f"feed {url}: " in warning
            assert "nothing is lost" in warning
            own.start()
            _, err = process.communicate(timeout=90)
            assert process.returncode == 0, err
            assert "Traceback" not in err
        check_whole(url, out)
        cursor = tmp_path / "cursor"
        words = ("feed", str(out), "--to", copy, "--cursor-file", str(cursor))
        assert run(*words, "--limit", "20").returncode == 0
        assert cursor.read_text() == "20\n"
        own.stop(signal.SIGTERM)
        line = run(*words).stderr
        assert "no broker answers" in line
        assert cursor.read_text() == "20\n"
        own.start()
        done = run(*words)
        assert done.returncode == 0, done.stderr
        check_whole(copy, out)


def test_the_feed_of_a_folder_goes_to_a_topic_beside_its_crawl_and_over_a_kill(
    web: RunningWeb, kafka: KafkaServer, tmp_path: Path
) -> None:
    out, url, cursor = tmp_path / "out", new_topic(kafka), tmp_path / "cursor"
    assert run("crawl", *web.seeds(), *crawl_options(web, out, PACE_MS), "-n", "60").returncode == 0
    words = ("feed", str(out), "--to", url, "--cursor-file", str(cursor))
    killed = run(*words, environment={"GOSSAMER_FAILPOINT": "in_feed:kill:1"})
    assert killed.returncode == -signal.SIGKILL
    assert not cursor.exists()
    assert messages_in(url)
    with beside("resume", str(out), "-n", "10000", "--json") as crawl:
        done = run(*words, "--follow")
        crawl.communicate(timeout=60)
    assert done.returncode == 0, done.stderr
    done = run(*words)
    assert done.returncode == 0, done.stderr
    check_whole(url, out)
    assert run(*words).stdout == f"0 documents sent to {url}, 0 marked as gone, 0 cut\n"


def test_documents_that_are_too_large_are_sent_without_their_text_and_reported(
    web: RunningWeb, kafka: KafkaServer, tmp_path: Path
) -> None:
    out, url = tmp_path / "out", new_topic(kafka, config={"max.message.bytes": "2500"})
    done = run(*command(web, out, url, "-n", "20"))
    assert done.returncode == 0, done.stderr
    cut = [document for document in read_topic(url).values() if document is not None and document.get("is_cut")]
    assert cut
    for document in cut:
        assert (document["text"], document["links"], document["headings"]) == ("", [], [])
        assert document["title"]
        assert f"feed {url}: {document['url']}: its document is larger than a message may be" in done.stderr
    sent = run("feed", str(out), "--to", url)
    assert sent.returncode == 0
    assert sent.stdout.endswith(f"{len(cut)} cut\n")
    assert sent.stderr.count("max.message.bytes of the topic") == len(cut)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line with which something was refused."""
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_what_cannot_be_used_is_one_line(web: RunningWeb, kafka: KafkaServer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    nobody = f"kafka://me:secret@127.0.0.1:{free_port()}/pages"
    line = refused(run(*command(web, out, nobody)))
    assert "no broker answers" in line
    assert "secret" not in line
    nowhere = f"kafka://{kafka.address}/nowhere"
    line = refused(run(*command(web, out, nowhere)))
    assert f"there is no topic nowhere; create it with 'gossamer init-cluster {nowhere}'" in line
    line = refused(run(*command(web, out, new_topic(kafka) + "?frobnicate=1")))
    assert "frobnicate" in line
    assert "expected options of librdkafka" in line
    line = refused(run(*command(web, out, nowhere, "--store", "files")))
    assert "add --store warc" in line
    assert not out.exists()
    assert "unknown feed" in refused(run("feed", str(out), "--to", "redis://h/1"))


def test_the_nodes_of_a_cluster_share_a_topic(kafka: KafkaServer, tmp_path: Path) -> None:
    program = engines.valkey()
    url, copy = new_topic(kafka), new_topic(kafka)
    with running(program, tmp_path / "redis") as redis, RunningWeb(PLAN) as web:
        nodes = Nodes(web, redis, tmp_path, "crawl", more=["--feed", url])
        nodes.start("a", "b")
        nodes.wait_for_requests(60)
        nodes.kill("a")
        summary = nodes.end("b")
        done = run("feed", nodes.url, "--to", copy)
    found = {key: document["content_hash"] for key, document in read_topic(url).items() if document is not None}
    assert len(found) == summary["pages"]
    assert done.returncode == 0, done.stderr
    assert {
        key: document["content_hash"] for key, document in read_topic(copy).items() if document is not None
    } == found
