from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.errors import UsageError
from gossamer.settings.seeds import needs_contact, opened_addresses, seed_from, seeds_from, seeds_from_csv


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
        "\ufeff# my seeds\n\nhttps://a.test/\n  b.test  # the second\nhttp://c.test/#frag\nd.test\t7\n", "utf-8"
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
    assert [seed.rank for seed in seeds] == sorted((seed.rank for seed in seeds), reverse=True)


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
