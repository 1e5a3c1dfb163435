"""What machines do to a crawl: full disks, stopped processes, few files. Nothing is lost."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.archive.files import file_name
from gossamer.archive.reader import ArchiveReader
from gossamer.sim.web.server_judge import JudgeRules
from gossamer.sim.web.web import preset
from tests.e2e.preloaded import GOSSAMER
from tests.e2e.program import crawl, crawl_options, run, start, summary_of
from tests.servers import engines
from tests.servers.web import RunningWeb


@pytest.fixture
def small_web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small")) as web:
        yield web


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run([engines.program("small-disk"), "-t", "tmpfs", "-o", "size=2500k", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def pages_stored(out: Path) -> list[str]:
    return [
        record.target
        for path in sorted((out / "archive").iterdir())
        for record in ArchiveReader(path)
        if record.type in ("response", "revisit") and record.block[9:12] == b"200" and "robots.txt" not in record.target
    ]


@pytest.mark.engine("small-disk")
def test_a_full_disk_stops_the_crawl_with_status_3_and_it_goes_on_when_there_is_room(
    small_disk: Path, small_web: RunningWeb
) -> None:
    out = small_disk / "out"
    arguments = ["crawl", *small_web.seeds(), *crawl_options(small_web, out, 20), "--sitemaps", "off"]
    full = run(*arguments)
    assert full.returncode == 3, full.stderr
    *lines, last = full.stderr.strip().splitlines()
    assert "room" in last
    assert sum("free on the disk" in line for line in lines) <= 1
    still_full = run(*arguments)
    assert still_full.returncode == 3, still_full.stderr
    subprocess.run(["mount", "-o", "remount,size=200m", small_disk], check=True)
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    report = small_web.judge(JudgeRules(politeness_s=0.02, slack_s=0.003, sitemaps=False))
    assert report.missing == 0, report.render()
    assert report.is_polite, report.render()
    stored = pages_stored(out)
    assert len(stored) == len(set(stored))


def test_a_stopped_process_goes_on_as_if_nothing_had_happened(tmp_path: Path, small_web: RunningWeb) -> None:
    process = start("crawl", *small_web.seeds(), *crawl_options(small_web, tmp_path / "out", 40), "-vv", is_new=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("heartbeat"):
            break
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2.0)  # it stands still
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    report = small_web.judge(JudgeRules(politeness_s=0.04, slack_s=0.003))
    assert report.is_clean, report.render()
    assert report.missing == 0, report.render()


def test_few_file_descriptors_mean_fewer_connections_not_errors(tmp_path: Path, small_web: RunningWeb) -> None:
    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    arguments = [*GOSSAMER, "crawl", *small_web.seeds(), *crawl_options(small_web, tmp_path / "out", 10)]
    done = subprocess.run(arguments, preexec_fn=limit_files, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert small_web.judge(JudgeRules(politeness_s=0.01, slack_s=0.003)).missing == 0


def test_a_second_signal_ends_at_once_and_nothing_is_lost(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    arguments = ["crawl", *small_web.seeds(), *crawl_options(small_web, out, 40)]
    process = start(*arguments, "-vv")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("heartbeat"):
            break
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode in (11, 13)  # 11: it was through before the second one came
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    report = small_web.judge(JudgeRules(politeness_s=0.04, slack_s=0.003))
    assert report.missing == 0, report.render()
    assert report.is_polite, report.render()


def test_a_worker_that_dies_alone_is_replaced(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    done = run(
        *("crawl", *small_web.seeds(), *crawl_options(small_web, out, 20), "--workers", "2"),
        environment={"GOSSAMER_FAILPOINT": "after_archive_write:kill:20"},
    )
    assert done.returncode == 0, done.stderr
    assert summary_of(done.stdout)["worker_deaths"] == 2
    report = small_web.judge(JudgeRules(politeness_s=0.02, slack_s=0.003))
    assert report.missing == 0, report.render()
    assert report.is_polite, report.render()
    stored = pages_stored(out)
    assert len(stored) == len(set(stored))


def test_dead_letters_can_be_looked_at_and_tried_again(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    first = crawl(small_web, out, 10)
    listed = run("retry", str(out), "--list")
    assert listed.returncode == 0
    assert len(listed.stdout.splitlines()) == first["dead"] > 0
    for words, status, says in (
        (("--outcome", "nonsense"), 2, "--outcome nonsense: no such outcome; expected one of client_error, "),
        (("--list", "--outcome", "nonsense"), 2, "no such outcome"),
        (("--host", "nonsense.test"), 1, "no dead letters match"),
        (("--list", "--host", "nonsense.test"), 1, "no dead letters match"),
    ):
        refused = run("retry", str(out), *words)
        assert (refused.returncode, refused.stderr.count("\n")) == (status, 1), refused.stderr
        assert says in refused.stderr
    assert len(list((out / "events").glob("*.jsonl"))) == 1, "no run was started"
    done = run("retry", str(out), "--json")
    assert done.returncode == 0, done.stderr
    assert f"{first['dead']} dead letters are queued again" in done.stderr
    again = summary_of(done.stdout)
    assert again["fetches"] >= first["fetches"] + first["dead"]
    assert again["dead"] == first["dead"]


def test_plain_files_have_safe_names(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    crawl(small_web, out, 10, "--store", "files", "-n", "30")
    files = [path for path in (out / "files").rglob("*") if path.is_file()]
    assert len(files) >= 25
    home = small_web.seeds(1)[0]
    host = home.split("/")[2].split(":")[0]
    stored = out / "files" / host / file_name(home)
    assert stored.read_bytes().lstrip().lower().startswith(b"<!doctype html")
    assert not list((out / "archive").iterdir())


def test_a_crawl_that_was_killed_before_its_first_commit_begins_again_with_its_seeds(
    tmp_path: Path, small_web: RunningWeb
) -> None:
    out = tmp_path / "out"
    options = crawl_options(small_web, out, 10)
    killed = run("crawl", *small_web.seeds(), *options, environment={"GOSSAMER_FAILPOINT": "before_commit:kill:1"})
    assert killed.returncode == -signal.SIGKILL
    done = run("resume", str(out), "--json")
    assert done.returncode == 0, done.stderr
    assert summary_of(done.stdout)["pages"] > 100
