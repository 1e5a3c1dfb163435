"""In which country is an address?"""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.fetch.names.countries import open_countries
from gossamer.model.errors import UsageError
from tests.servers.mmdb import write_countries


def test_the_country_of_an_address_is_in_the_file(tmp_path: Path) -> None:
    file = write_countries(tmp_path / "countries.mmdb", {"127.0.0.0/16": "DE", "127.1.2.3/32": "US"})
    country_of = open_countries(str(file))
    assert [country_of(each) for each in ("127.0.9.9", "127.1.2.3", "127.1.2.4", "::1")] == ["DE", "US", "", ""]


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "No such file or directory"), (b"no database", "not a file in MaxMind's format; expected GeoLite2")],
)
def test_a_file_that_cannot_be_used_is_one_line(tmp_path: Path, content: bytes | None, expected: str) -> None:
    path = tmp_path / "countries.mmdb"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError) as error:
        open_countries(str(path))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_a_node_without_a_file_is_told_what_is_missing() -> None:
    with pytest.raises(UsageError, match="expected --geoip FILE on every node"):
        open_countries("")
