"""Crawls whose pages go to a real S3 server: nothing is lost, whatever dies, and everything can be read back."""

from __future__ import annotations

import gzip
import hashlib
import json
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.program import crawl_options, run, start, summary_of
from tests.servers import engines
from tests.servers.s3 import BUCKET, S3Proxy, S3Server, proxy, running
from tests.servers.web import RunningWeb

PAGES = 50
PLAN = preset("small", seed=5, pages=PAGES)
PACE_MS = 10
SAVE = ("--save-interval", "10")
# What differs between two crawls of the same web.
VOLATILE = ("fetched_at", "storage", "connect_ms", "tls_ms", "first_byte_ms", "total_ms")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    program = engines.weed()
    with running(program, tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with RunningWeb(PLAN) as web:
        yield web


@pytest.fixture
def between(server: S3Server) -> Iterator[S3Proxy]:
    with proxy(server) as made:
        yield made


class Crawl:
    """A crawl folder and its place in the store."""

    def __init__(self, folder: Path, server: S3Server, web: RunningWeb, port: int = 0) -> None:
        self.folder = folder / "out"
        self.server = server
        self.web = web
        self.prefix = folder.name
        self.environment = server.environment(port)

    def words(self, *more: str) -> list[str]:
        """Return the command."""
        store = ("--store", f"s3://{BUCKET}/{self.prefix}")
        return ["crawl", *self.web.seeds(), *crawl_options(self.web, self.folder, PACE_MS), *store, *SAVE, *more]

    def run(self, *more: str, failpoint: str = "") -> subprocess.CompletedProcess[str]:
        return run(*self.words(*more), environment=self.environment | {"GOSSAMER_FAILPOINT": failpoint})

    def resume(self, *more: str, failpoint: str = "") -> subprocess.CompletedProcess[str]:
        environment = self.environment | {"GOSSAMER_FAILPOINT": failpoint}
        return run("resume", str(self.folder), "--json", *more, environment=environment)

    def verb(self, name: str, *more: str) -> subprocess.CompletedProcess[str]:
        return run(name, str(self.folder), *more, environment=self.environment)

    def keys(self, part: str = "") -> list[str]:
        return sorted(key.removeprefix(f"{self.prefix}/") for key in self.server.keys(f"{self.prefix}/{part}"))

    def local_files(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "archive").glob("*.warc.gz*"))

    def check_complete(self, done: subprocess.CompletedProcess[str]) -> None:
        """Everything was fetched, is in the store and in order, and nothing else is there."""
        assert done.returncode == 0, done.stderr
        assert summary_of(done.stdout)["pages"] == PAGES, done.stdout
        assert self.keys("segments/") == []
        assert self.local_files() == []
        verified = self.verb("verify")
        assert verified.returncode == 0, verified.stdout
        assert f"{len(self.keys('archive/'))} objects in S3" in verified.stdout


def documents(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Return the exported pages, without what differs between two crawls."""
    assert done.returncode == 0, done.stderr
    pages = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted(
        ({name: value for name, value in page.items() if name not in VOLATILE} for page in pages),
        key=lambda page: page["url"],
    )


def test_a_crawl_goes_to_s3_and_back(tmp_path: Path, server: S3Server, web: RunningWeb) -> None:
    crawl = Crawl(tmp_path, server, web)
    crawl.check_complete(crawl.run("--connections", "1"))
    local = tmp_path / "local"
    one = ("--connections", "1")
    assert run("crawl", *web.seeds(), *crawl_options(web, local, PACE_MS), *one).returncode == 0
    exported = documents(crawl.verb("export", "--format", "jsonl"))
    assert len(exported) == PAGES
    assert exported == documents(run("export", str(local), "--format", "jsonl"))
    names = {
        json.loads(line.split(" ", 2)[2])["filename"]
        for line in crawl.verb("export", "--format", "cdxj").stdout.splitlines()
    }
    assert sorted(f"archive/{name}" for name in names) == crawl.keys("archive/")
    assert sorted(f"index/{name}.cdxj" for name in names) == crawl.keys("index/")
    index = b"".join(
        sorted(
            line
            for name in names
            for line in server.read(f"{crawl.prefix}/index/{name}.cdxj").splitlines(keepends=True)
        )
    )
    assert index == (crawl.folder / "index" / "index.cdxj").read_bytes()
    assert "response of" in run("why", str(crawl.folder), web.seeds()[0], environment=crawl.environment).stdout
    assert crawl.verb("audit").returncode == 0
    for path in (crawl.folder / "state").glob("*.mdb"):
        path.unlink()
    assert crawl.verb("verify").returncode == 1
    rebuilt = crawl.verb("verify", "--mend")
    assert rebuilt.returncode == 0, rebuilt.stdout
    assert "ledger rebuilt from" in rebuilt.stdout
    assert len(crawl.verb("export", "--format", "jsonl").stdout.splitlines()) == PAGES


def test_the_archive_stays_here_too_if_it_is_a_store_of_its_own(
    tmp_path: Path, server: S3Server, web: RunningWeb
) -> None:
    crawl = Crawl(tmp_path, server, web)
    done = crawl.run("--store", "warc", "--workers", "2", "-n", "30")
    assert done.returncode == 0, done.stderr
    assert [f"archive/{name}" for name in crawl.local_files()] == crawl.keys("archive/")
    for name in crawl.local_files():
        assert (crawl.folder / "archive" / name).read_bytes() == server.read(f"{crawl.prefix}/archive/{name}")
    assert crawl.keys("segments/") == []


@pytest.mark.parametrize(
    ("environment", "bucket", "says"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, BUCKET, "the secret key is wrong"),
        ({"AWS_ACCESS_KEY_ID": "nobody"}, BUCKET, "the access key does not exist"),
        ({}, "no-such-bucket", "there is no such bucket"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, BUCKET, "cannot be reached at http://127.0.0.1:1"),
        ({"AWS_ENDPOINT_URL": "127.0.0.1"}, BUCKET, "AWS_ENDPOINT_URL is not a URL"),
    ],
)
def test_a_store_that_cannot_be_used_is_one_line_before_anything_is_started(
    tmp_path: Path, server: S3Server, environment: dict[str, str], bucket: str, says: str
) -> None:
    out = tmp_path / "out"
    done = run(
        *("crawl", "http://localhost:9/", "-o", str(out), "--store", f"s3://{bucket}/x"),
        environment=server.environment() | environment,
    )
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert f"--store s3://{bucket}/x: {says}" in line
    assert "testsecret" not in line
    assert not out.exists()


def test_a_crawl_killed_at_every_step_loses_nothing(tmp_path: Path, server: S3Server, web: RunningWeb) -> None:
    crawl = Crawl(tmp_path, server, web)
    killed = crawl.run(failpoint="after_upload:kill:1")
    for failpoint in ("after_merge:kill:1", "after_segments_removed:kill:2", "before_commit:kill:2"):
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        killed = crawl.resume(failpoint=failpoint)
    crawl.check_complete(crawl.resume() if killed.returncode else killed)


def _wait_for(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if words in line:
            return
    raise AssertionError(f"ended without {words!r}: {seen}")


def test_an_outage_pauses_the_crawl_which_goes_on_by_itself(
    tmp_path: Path, server: S3Server, web: RunningWeb, between: S3Proxy
) -> None:
    crawl = Crawl(tmp_path, server, web, between.port)
    process = start(*crawl.words("-vv"), environment=crawl.environment)
    _wait_for(process, "fetched")
    between.fault = "refuse"
    _wait_for(process, "fetching is paused")
    between.fault = ""
    out, err = process.communicate(timeout=60)
    crawl.check_complete(subprocess.CompletedProcess([], process.returncode, out, err))


def test_a_crawl_killed_in_an_outage_loses_nothing(
    tmp_path: Path, server: S3Server, web: RunningWeb, between: S3Proxy
) -> None:
    crawl = Crawl(tmp_path, server, web, between.port)
    process = start(*crawl.words("-vv"), environment=crawl.environment)
    _wait_for(process, "fetched")
    between.fault = "answer_503"
    _wait_for(process, "fetching is paused")
    process.kill()
    process.communicate(timeout=60)
    refused = crawl.resume()
    assert refused.returncode == 2
    assert "answered 503" in refused.stderr
    between.fault = ""
    crawl.check_complete(crawl.resume())


def test_a_crawl_stopped_in_an_outage_ends_and_can_be_resumed(
    tmp_path: Path, server: S3Server, web: RunningWeb, between: S3Proxy
) -> None:
    crawl = Crawl(tmp_path, server, web, between.port)
    process = start(*crawl.words("-vv"), environment=crawl.environment)
    _wait_for(process, "fetched")
    between.fault = "refuse"
    _wait_for(process, "fetching is paused")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 11, err
    assert "resume when it is" in err.strip().splitlines()[-1]
    between.fault = ""
    crawl.check_complete(crawl.resume())


def test_slow_cut_and_refused_requests_are_repeated(
    tmp_path: Path, server: S3Server, web: RunningWeb, between: S3Proxy
) -> None:
    crawl = Crawl(tmp_path, server, web, between.port)
    process = start(*crawl.words("-vv"), environment=crawl.environment)
    _wait_for(process, "fetched")
    between.fault = "mixed"
    out, err = process.communicate(timeout=60)
    between.fault = ""
    crawl.check_complete(subprocess.CompletedProcess([], process.returncode, out, err))


def test_verify_finds_what_is_wrong_in_the_store_and_mends_what_it_can(
    tmp_path: Path, server: S3Server, web: RunningWeb
) -> None:
    crawl = Crawl(tmp_path, server, web)
    assert crawl.run("-n", "50", "--store", "warc").returncode == 0
    whole, replaced, alone = (f"{crawl.prefix}/{key}" for key in crawl.keys("archive/")[:3])
    label = (crawl.folder / "archive" / "label").read_text().strip()
    client = server.client()
    client.delete_object(Bucket=BUCKET, Key=whole)
    client.put_object(Bucket=BUCKET, Key=replaced, Body=b"x" * server.keys(replaced)[replaced])
    (crawl.folder / "archive" / Path(alone).name).unlink()
    left = [f"{crawl.prefix}/segments/gossamer-{label}-1-00-00009.warc.gz/000000000000-000000000001.r-00000001"]
    kept = [f"{crawl.prefix}/segments/gossamer-another-1-00-00009.warc.gz/000000000000-000000000001.r-00000001"]
    for key in left + kept:
        client.put_object(Bucket=BUCKET, Key=key, Body=b"x")
    found = crawl.verb("verify")
    assert found.returncode == 1
    assert f"{Path(whole).name}: is not in s3://" in found.stdout
    assert f"{Path(replaced).name}: was replaced" in found.stdout
    assert Path(alone).name not in found.stdout
    mended = crawl.verb("verify", "--mend")
    assert mended.returncode == 0, mended.stdout
    assert [f"{crawl.prefix}/{key}" for key in crawl.keys("segments/")] == kept
    client.put_object(Bucket=BUCKET, Key=alone, Body=server.read(alone)[:-40] + b"y" * 40)
    found = crawl.verb("verify")
    assert found.returncode == 1
    assert f"{Path(alone).name}: its bytes in the store are not those that were stored there" in found.stdout


def test_every_page_is_an_object_if_the_layout_is_page(tmp_path: Path, server: S3Server, web: RunningWeb) -> None:
    crawl, began_at = Crawl(tmp_path, server, web), datetime.now(UTC)
    killed = crawl.run("--s3-layout", "page", failpoint="before_commit:kill:2")
    assert killed.returncode == -signal.SIGKILL
    done = crawl.resume()
    assert done.returncode == 0, done.stderr
    pages = documents(crawl.verb("export", "--format", "jsonl"))
    assert len(pages) == PAGES
    keys = {page["url"]: _raw_key(page["url"]) for page in pages}
    assert sorted(keys.values()) == crawl.keys()
    client = server.client()
    for page in pages:
        answer = client.get_object(Bucket=BUCKET, Key=f"{crawl.prefix}/{keys[page['url']]}")
        body, about = gzip.decompress(answer["Body"].read()), answer["Metadata"]
        assert (about["url"], about["size"]) == (page["url"], str(page["bytes"]))
        assert about["mime-type"] == page["content_type"]
        assert about["content-hash"] == hashlib.sha256(body).hexdigest()
        assert began_at <= datetime.fromisoformat(about["fetched-at"]) <= datetime.now(UTC)
    assert f"{PAGES} objects in S3" in crawl.verb("verify").stdout
    client.delete_object(Bucket=BUCKET, Key=f"{crawl.prefix}/{keys[pages[0]['url']]}")
    found = crawl.verb("verify")
    assert found.returncode == 1
    assert f"{pages[0]['url']}: is not there" in found.stdout
    assert crawl.verb("verify", "--mend").returncode == 0
    assert sorted(keys.values()) == crawl.keys()


def _raw_key(url: str) -> str:
    name = hashlib.sha1(url.encode()).hexdigest()
    return f"raw/{name[:2]}/{name}.gz"
