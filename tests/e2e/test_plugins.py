"""Plugins as users meet them: the examples installed and used, a crawl that misses one, and those that are broken."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.program import run
from tests.servers.plain_site import Answer, PlainSite, plain_site

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"
FAST = ("--politeness-ms", "0", "--no-traps", "--retry-wait", "0.01")
NAMES = ("csv", "jsonl", "no-forms", "short-first")
USED = [word for name in NAMES for word in ("--plugin", name)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The examples, installed as pip does it, in a tenth of the time."""
    target = tmp_path_factory.mktemp("installed")
    for folder in sorted(EXAMPLES.iterdir()):
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        ((group, entries),) = project["entry-points"].items()
        ((name, value),) = entries.items()
        shutil.copy(folder / f"{value.partition(':')[0]}.py", target)
        _write_info(target, project["name"], project["version"], f"[{group}]\n{name} = {value}\n")
    return {"PYTHONPATH": str(target)}


def _write_info(folder: Path, package: str, version: str, entry_points: str) -> None:
    info = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)


@pytest.fixture
def site() -> Iterator[PlainSite]:
    with plain_site() as site:
        site.answers["/"] = Answer(
            '<p>Front <a href="/a-page-with-a-long-name">long</a> <a href="/b">b</a> <a href="/table.csv">table</a>'
            '<a href="/form">Log in</a>'
        )
        site.answers |= {
            "/a-page-with-a-long-name": Answer("<p>long"),
            "/b": Answer("<p>b"),
            "/form": Answer("<p>form"),
            "/table.csv": Answer("name,url\nOne,/only-in-the-table\n", content_type="text/csv"),
            "/only-in-the-table": Answer("<p>found in a table"),
        }
        yield site


def written(folder: Path, kind: str, name: str, code: str, version: str = "2.1") -> dict[str, str]:
    """Install a plugin by hand: a module, and the entry point that names it."""
    folder.mkdir(exist_ok=True)
    module = f"plugin_{name}"
    (folder / f"{module}.py").write_text(code)
    _write_info(folder, module, version, f"[gossamer.{kind}]\n{name} = {module}:Plugin\n")
    return {"PYTHONPATH": str(folder)}


def test_the_examples_are_installed_and_used(site: PlainSite, installed: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "c"
    done = run("crawl", site.url, *FAST, *USED, "-o", str(out), "--json", environment=installed)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pages"] == 5
    # The shortest URL first; what the table links to is found, what leads to a form is not.
    assert site.requests == [
        *("/robots.txt", "/", "/b", "/table.csv", "/only-in-the-table", "/a-page-with-a-long-name"),
    ]
    lines = [json.loads(line) for line in (out / "pages-00.jsonl").read_text().splitlines()]
    titles = {line["url"].removeprefix(site.url): line["title"] for line in lines}
    assert len(lines) == 5
    assert titles["table.csv"] == "name, url"
    assert 'plugin = ["csv==1.0","jsonl==1.0","no-forms==1.0","short-first==1.0"]' in (out / "crawl.toml").read_text()
    exported = run("export", str(out), "--format", "jsonl", environment=installed)
    documents = {one["url"]: one for one in map(json.loads, exported.stdout.splitlines())}
    table = documents[f"{site.url}table.csv"]
    assert (table["title"], table["links"][0]["url"]) == ("name, url", f"{site.url}only-in-the-table")


def test_a_crawl_goes_on_only_with_its_plugins(site: PlainSite, installed: dict[str, str], tmp_path: Path) -> None:
    out = str(tmp_path / "c")
    begun = run("crawl", site.url, *FAST, "--plugin", "jsonl", "-n", "1", "-o", out, environment=installed)
    assert begun.returncode == 0, begun.stderr
    refused = run("resume", out, "-n", "9")
    assert refused.returncode == 2
    assert refused.stderr == (
        "gossamer resume: plugin = 'jsonl': not installed, and this crawl used version 1.0 of it; installed are: none\n"
    )
    assert run("status", out).returncode == 0  # to read it, none is needed
    other = run("resume", out, "--plugin", "csv", environment=installed)
    assert (other.returncode, "--plugin cannot change once a crawl has started" in other.stderr) == (2, True)
    on = run("crawl", "-o", out, "-n", "9", "--plugin", "jsonl", environment=installed)
    assert on.returncode == 0, on.stderr
    assert len((tmp_path / "c" / "pages-00.jsonl").read_text().splitlines()) == 5


def test_another_version_is_said_and_recorded(site: PlainSite, tmp_path: Path) -> None:
    code = "class Plugin:\n    def accept(self, link):\n        return True\n"
    old = written(tmp_path / "old", "link_filters", "all", code, version="1.0")
    new = written(tmp_path / "new", "link_filters", "all", code, version="1.1")
    out = str(tmp_path / "c")
    assert run("crawl", site.url, *FAST, "--plugin", "all", "-n", "1", "-o", out, environment=old).returncode == 0
    done = run("resume", out, "-n", "9", environment=new)
    assert "warning: plugins have changed: all==1.0 is all==1.1 now" in done.stderr
    assert 'plugin = ["all==1.1"]' in (tmp_path / "c" / "crawl.toml").read_text()


def _plugins_line(text: str) -> str:
    return next(line for line in text.splitlines() if line.split()[1] == "plugins")


def test_doctor_lists_plugins_and_says_what_is_broken(installed: dict[str, str], tmp_path: Path) -> None:
    line = _plugins_line(run("doctor", environment=installed, cwd=tmp_path).stdout)
    kinds = "csv 1.0 (parser), jsonl 1.0 (sink), no-forms 1.0 (link filter), short-first 1.0 (order)"
    assert line.split(None, 2) == ["ok", "plugins", kinds]
    broken = written(tmp_path / "broken", "orders", "bad", "import nothing_like_it\n")
    done = run("doctor", environment=broken, cwd=tmp_path)
    line = _plugins_line(done.stdout)
    assert done.returncode == 1
    assert line.startswith("BAD  plugins     bad 2.1 (order): cannot be loaded: ModuleNotFoundError")


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        (
            "orders",
            "raise ValueError('no')",
            "bad 2.1 (order): cannot be loaded: ValueError: no; reinstall plugin_bad",
        ),
        ("orders", "class Plugin: pass", "plugin_bad:Plugin has no method 'score'"),
        ("parsers", "class Plugin:\n    def parse(self): pass", "names no content_types"),
        ("sinks", "Plugin = 5", "has no function (folder, worker)"),
        ("sinks", "Other = 5", "cannot be loaded: AttributeError"),
    ],
)
def test_a_broken_plugin_is_one_line_before_anything_starts(tmp_path: Path, kind: str, code: str, words: str) -> None:
    there = written(tmp_path / "there", kind, "bad", code)
    done = run("crawl", "http://localhost/", "--plugin", "bad", "-o", str(tmp_path / "c"), environment=there)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "c").exists()


def test_names_that_are_wrong_are_answered_with_those_that_are_right(installed: dict[str, str], tmp_path: Path) -> None:
    for words, names in {
        "plugin = 'cvs': not installed; installed are: csv, jsonl, no-forms, short-first": ["cvs"],
        "plugin: csv, csv: one of them is named twice": ["csv", "csv"],
    }.items():
        given = [word for name in names for word in ("--plugin", name)]
        done = run("crawl", "http://localhost/", *given, "-o", str(tmp_path / "c"), environment=installed)
        assert done.returncode == 2
        assert words in done.stderr


def test_a_parser_that_raises_ends_its_page(site: PlainSite, tmp_path: Path) -> None:
    code = (
        'class Plugin:\n    content_types = ["text/csv"]\n    def parse(self, *_):\n        raise ValueError("odd")\n'
    )
    there = written(tmp_path / "there", "parsers", "odd", code)
    out = str(tmp_path / "c")
    done = run("crawl", site.url, *FAST, "--plugin", "odd", "-o", out, "--json", environment=there)
    assert done.returncode == 0
    assert json.loads(done.stdout)["pages"] == 4
    assert "warning: plugin 'odd': parse: ValueError: odd; the page ends with it" in done.stderr
    assert "internal_error" in run("why", out, f"{site.url}table.csv").stdout


@pytest.mark.parametrize(
    ("kind", "code", "line"),
    [
        (
            "sinks",
            "class Plugin:\n"
            "    def __init__(self, folder, worker): pass\n"
            "    def write(self, answer): raise OSError(5, 'broken')\n"
            "    def sync(self): pass\n"
            "    def close(self): pass\n",
            "plugin 'odd': write: OSError: [Errno 5] broken",
        ),
        (
            "link_filters",
            "class Plugin:\n    def accept(self, link): return 1 / (link.text != 'b')\n",
            "/b: ZeroDivisionError: division by zero",
        ),
        (
            "orders",
            "class Plugin:\n    def score(self, url, depth): return 'high' if depth else 1\n",
            "ValueError: could not convert string to float: 'high'",
        ),
    ],
)
def test_another_plugin_that_raises_ends_the_crawl_and_nothing_is_lost(
    site: PlainSite, tmp_path: Path, kind: str, code: str, line: str
) -> None:
    there = written(tmp_path / "there", kind, "odd", code)
    out = str(tmp_path / "c")
    workers = "2" if kind == "sinks" else "1"
    done = run("crawl", site.url, *FAST, "--plugin", "odd", "--workers", workers, "-o", out, environment=there)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("gossamer crawl: plugin 'odd': ")
    assert done.stderr.splitlines()[-1].endswith(line)
    assert "Traceback" not in done.stderr
    good = {
        "sinks": "class Plugin:\n    def __init__(self, *_): pass\n    def write(self, _): pass\n"
        "    def sync(self): pass\n    def close(self): pass\n",
        "link_filters": "class Plugin:\n    def accept(self, link): return True\n",
        "orders": "class Plugin:\n    def score(self, url, depth): return 50\n",
    }
    (tmp_path / "there" / "plugin_odd.py").write_text(good[kind])
    resumed = run("resume", out, "--json", environment=there)
    assert json.loads(resumed.stdout)["pages"] == 5, resumed.stderr
    assert run("verify", out, environment=there).returncode == 0
