from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.model.errors import UsageError
from gossamer.model.state import SeedRecord
from gossamer.settings.seeds import needs_contact, opened_addresses, seed_from, seeds_from, seeds_from_csv, seeds_in


def _urls(*arguments: str) -> list[str]:
    return [seed.link.url for seed in seeds_from(arguments)]


@pytest.mark.parametrize(
    ("text", "url", "is_guess"),
    [
        ("https://Example.org", "https://example.org/", False),
        ("http://example.org/a?b#c", "http://example.org/a?b", False),
        ("  https://example.org/  ", "https://example.org/", False),
        ("example.org", "https://example.org/", True),
        ("example.org/path?x=1", "https://example.org/path?x=1", True),
        ("example.org/robots.txt", "https://example.org/robots.txt", True),
        ("b\u00fccher.example", "https://xn--bcher-kva.example/", True),
        ("localhost:8000", "https://localhost:8000/", True),
        ("localhost", "https://localhost/", True),
        ("127.0.0.1:8080/x", "https://127.0.0.1:8080/x", True),
        ("[::1]:8080", "https://[::1]:8080/", True),
        ("http://localhost:8000/", "http://localhost:8000/", False),
    ],
)
def test_a_seed_is_a_url_or_a_bare_domain(text: str, url: str, is_guess: bool) -> None:
    (seed,) = seeds_from([text])
    assert (seed.link.url, seed.is_guess) == (url, is_guess)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("ftp://example.org/", "scheme 'ftp' cannot be crawled"),
        ("file:///etc/passwd", "scheme 'file'"),
        ("http://", "not a URL"),
        ("https://exa mple.org/", "not a URL"),
        ("example", "neither a URL nor a domain nor a file"),
        ("", "neither a URL"),
        ("hello world", "neither a URL"),
        ("example.org:99999", "neither a URL"),
        ("x" * 5000, "neither a URL"),
        ("a\0b", "neither a URL"),
        ("./no/such/file.txt", "cannot read the seeds"),
        ("no/such/list.csv", "cannot read the seeds"),
        ("seeds.txt", "seeds.txt: cannot read the seeds"),
    ],
)
def test_a_bad_seed_is_reported_in_one_line(text: str, part: str) -> None:
    with pytest.raises(UsageError) as what:
        seeds_from([text])
    message = str(what.value)
    assert part in message
    assert "\n" not in message
    assert len(message) < 250


def test_a_file_has_one_seed_a_line(tmp_path: Path) -> None:
    path = tmp_path / "seeds"
    path.write_text(
        "\ufeff# my seeds\n\nhttps://a.test/\n  b.test  # the second\nhttp://c.test/#frag\nd.test\t# and\tthe last\n",
        "utf-8",
    )
    assert _urls(str(path), "e.test") == [
        "https://a.test/",
        "https://b.test/",
        "http://c.test/",
        "https://d.test/",
        "https://e.test/",
    ]


def test_a_bad_line_is_named_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text("https://a.test/\n\ngopher://b.test/\n")
    with pytest.raises(UsageError, match=r"seeds\.txt:3: 'gopher://b\.test/': scheme 'gopher'"):
        seeds_from([str(path)])


def test_a_seed_may_have_a_scope_a_depth_and_metadata(tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text(
        "https://a.test/\tscope=prefix\t depth=3 \tteam=news & more\t\tx.y-z_1=a=b\t# note\nb.test\tnote=\n"
    )
    first, second, third = seeds_from([str(path), "https://c.test/\tdepth=0"])
    metadata = {"team": "news & more", "x.y-z_1": "a=b"}
    assert first.rules == SeedRecord("https://a.test/", scope="prefix", depth=3, metadata=metadata)
    assert second.rules == SeedRecord("https://b.test/", metadata={"note": ""})
    assert second.is_guess
    assert third.rules == SeedRecord("https://c.test/", depth=0), "on the command line too"
    assert first.rules.stated == "scope=prefix depth=3 team='news & more' x.y-z_1=a=b"


@pytest.mark.parametrize(
    ("field", "part"),
    [
        ("7", "'7': expected key=value"),
        ("=news", "'=news': expected key=value"),
        ("my team=news", "'my team=news': expected key=value, with a key of letters, digits, '-', '_' and '.'"),
        ("t\u00e9am=news", "expected key=value"),
        ("scope=site", "scope 'site' is unknown; expected page, prefix, host, domain or any"),
        ("scope=", "scope '' is unknown"),
        ("depth=-1", "depth '-1': expected a whole number from 0 to 999999"),
        ("depth=two", "depth 'two': expected"),
        ("depth=1000000", "depth '1000000': expected"),
        ("depth=\u0663", "expected a whole number"),
        ("Depth=3", "'Depth=3': did you mean 'depth'?"),
        ("team=a\tteam=b", "'team' is given twice"),
        ("scope=host\tscope=host", "'scope' is given twice"),
    ],
)
def test_wrong_rules_of_a_seed_are_named_with_file_and_line(tmp_path: Path, field: str, part: str) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text(f"https://a.test/\nhttps://b.test/\t{field}\n", "utf-8")
    with pytest.raises(UsageError) as what:
        seeds_from([str(path)])
    assert "seeds.txt:2: " in str(what.value)
    assert part in str(what.value)
    assert "\n" not in str(what.value)


@pytest.mark.parametrize("line", ["https://a.test/  scope=prefix t=x", "a.test depth=3", "https://a.test/ a=b\tc=d"])
def test_fields_behind_spaces_are_no_part_of_the_url(tmp_path: Path, line: str) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text(f"https://b.test/\n{line}\n")
    with pytest.raises(UsageError, match="fields behind spaces; expected a tab before each key=value") as raised:
        seeds_from([str(path)])
    assert str(raised.value).startswith(f"{path}:2: ")


def test_a_url_with_spaces_is_a_url() -> None:
    urls = [seed.link.url for seed in seeds_in(["https://a.test/a file", "https://a.test/?q=a b=c"])]
    assert urls == ["https://a.test/a%20file", "https://a.test/?q=a%20b=c"]


def test_a_seed_that_is_listed_twice_has_one_set_of_rules(tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text("https://a.test/\nhttps://a.test/#x\tdepth=2\nhttps://a.test/\tdepth=2\nhttps://b.test/\n")
    first, second = seeds_from([str(path)])
    assert (first.link.url, first.rules) == ("https://a.test/", SeedRecord("https://a.test/", depth=2))
    assert (second.link.url, second.rules) == ("https://b.test/", None)
    path.write_text("https://a.test/\tdepth=2\nhttps://a.test/\tdepth=3\n")
    with pytest.raises(
        UsageError, match=r"seeds\.txt:2: 'https://a\.test/' was given before with depth=2, not depth=3"
    ):
        seeds_from([str(path)])


def test_a_file_without_seeds_or_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text("# nothing\n")
    with pytest.raises(UsageError, match="no seeds in it"):
        seeds_from([str(path)])
    path.write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(UsageError, match="not a text file"):
        seeds_from([str(path)])


def _csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "top.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "a.test\nb.test\nc.test\n",
        "domain\na.test\nb.test\nc.test\n",
        "rank,domain\n1,a.test\n2,b.test\n3,c.test\n",
        "Domain,Note\na.test,x\nb.test,y\nc.test,z\n",
        "1,a.test\n2,b.test\n3,c.test\n",
        '# list\n"1","a.test"\r\n"2","b.test"\r\n\r\n"3","c.test"\r\n',
    ],
)
def test_a_csv_has_a_domain_a_row(tmp_path: Path, text: str) -> None:
    seeds = seeds_from_csv(_csv(tmp_path, text))
    assert [seed.link.url for seed in seeds] == ["https://a.test/", "https://b.test/", "https://c.test/"]
    assert all(seed.is_guess for seed in seeds)
    assert seeds[0].rank == 1.0
    ranks = [seed.rank for seed in seeds if seed.rank is not None]
    assert len(ranks) == len(seeds)
    assert ranks == sorted(ranks, reverse=True)


def test_a_csv_without_domains(tmp_path: Path) -> None:
    for text in ("", "# only a comment\n", "domain\n", "domain,x\n,1\n"):
        with pytest.raises(UsageError, match="no domains in it"):
            seeds_from_csv(_csv(tmp_path, text))
    with pytest.raises(UsageError, match=r"top\.csv: row 2: 'no domain'"):
        seeds_from_csv(_csv(tmp_path, "a.test\nno domain\n"))
    with pytest.raises(UsageError, match="cannot read the seeds"):
        seeds_from_csv(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("text", "addresses", "is_public"),
    [
        ("localhost:8000", ("127.0.0.1", "::1"), False),
        ("http://a.localhost/", ("127.0.0.1", "::1"), False),
        ("http://10.1.2.3/", ("10.1.2.3",), False),
        ("http://[::1]/", ("::1",), False),
        ("http://8.8.8.8/", (), True),
        ("http://a.test/", (), False),
        ("http://example.org/", (), True),
    ],
)
def test_what_a_seed_opens_and_who_needs_a_contact(text: str, addresses: tuple[str, ...], is_public: bool) -> None:
    seed = seed_from(text, "seed")
    assert opened_addresses(seed) == addresses
    assert needs_contact(seed) is is_public
