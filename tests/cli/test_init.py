"""`gossamer init`, and crawls that begin from a configuration file."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from gossamer.cli.main import main
from gossamer.settings.load import from_file, merged
from gossamer.settings.model import options
from gossamer.settings.seeds import line_of, seeds_from, seeds_in_config


def test_the_file_has_the_seeds_and_what_was_given_and_names_every_setting(tmp_path: Path) -> None:
    path = tmp_path / "news.toml"
    words = ["example.org", "https://example.net/a", "--max-pages", "500", "--scope", "host", "--no-traps"]
    assert main(["init", *words, "--store", "warc", "--store", "files", "-o", str(path)]) == 0
    values = tomllib.loads(path.read_text())
    assert values == {
        "seeds": ["example.org", "https://example.net/a"],
        **{"max-pages": 500, "scope": "host", "traps": False, "store": ["warc", "files"]},
    }
    text = path.read_text()
    assert all(f"{option.key} = " in text for option in options() if not option.is_table)


def test_every_comment_with_a_default_is_a_line_that_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "all.toml"
    assert main(["init", "example.org", "-o", str(path)]) == 0
    lines = [line.removeprefix("# ") for line in path.read_text().splitlines()]
    keys = {option.key for option in options()}
    tables = lines.index("Pace of hosts of a pattern, as often as needed:")
    used = [line for line in lines[:tables] if line.partition(" = ")[0] in keys and "…" not in line]
    path.write_text("\n".join([*used, *(line for line in lines[tables:] if line.startswith("[[") or " = " in line)]))
    monkeypatch.setenv("INTRANET_PASSWORD", "secret")
    assert merged(("file", from_file(path))).max_depth == 10
    assert len(used) > 60


def test_a_file_is_not_replaced_unless_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.toml"
    path.write_text("max-pages = 1\n")
    assert main(["init", "example.org", "-o", str(path)]) == 2
    assert f"{path}: there is such a file; expected another name (-o FILE), or --force" in capsys.readouterr().err
    assert path.read_text() == "max-pages = 1\n"
    assert main(["init", "example.org", "-o", str(path), "--force"]) == 0
    assert "example.org" in path.read_text()


def test_what_cannot_be_a_seed_or_a_setting_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "ftp://example.org/", "-o", "-"]) == 2
    assert "scheme 'ftp' cannot be crawled" in capsys.readouterr().err
    assert main(["init", "example.org", "--max-pages", "many", "-o", "-"]) == 2
    assert (
        capsys.readouterr().err == "gossamer init: command line: max-pages = 'many': expected a whole number, or none\n"
    )
    assert main(["init", "example.org", "-o", str(tmp_path / "none" / "a.toml")]) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


def test_seeds_of_a_file_may_be_files_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "more.txt").write_text("https://b.example/\tdepth=2\n# none\nhttps://c.example/\n")
    path = tmp_path / "crawl.toml"
    path.write_text('seeds = ["a.example", "lists/more.txt"]\n')
    monkeypatch.chdir("/")
    seeds = seeds_in_config(path)
    assert [seed.link.url for seed in seeds] == ["https://a.example/", "https://b.example/", "https://c.example/"]
    assert [seed.is_guess for seed in seeds] == [True, False, False]
    path.write_text("max-pages = 1\n")
    assert seeds_in_config(path) == []


@pytest.mark.parametrize("value", ['"a.example"', "[1]", "true"])
def test_seeds_that_are_no_list_of_texts_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    path = tmp_path / "crawl.toml"
    path.write_text(f"seeds = {value}\n")
    assert main(["crawl", "--config", str(path), "-o", str(tmp_path / "out")]) == 2
    assert "not a list of texts; expected [" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_seed_is_the_same_after_it_was_written_as_a_line(tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text(
        "example.org\nhttp://b.example/x?y=1\tscope=page\tdepth=0\ttopic=two words\nhttps://c.example:8443/\n"
    )
    seeds = seeds_from([str(path)])
    path.write_text("".join(f"{line_of(seed)}\n" for seed in seeds))
    assert seeds_from([str(path)]) == seeds
