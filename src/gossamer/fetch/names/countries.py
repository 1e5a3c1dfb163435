"""In which country is an address? By a file in MaxMind's format (GeoLite2, DB-IP, IPinfo and others have it).

The reader is an extra, `gossamer[geo]`, and loaded only if a rule for regions names a country. A look-up costs a few
microseconds; the file is mapped, not read. An address that is not in the file has no country.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from gossamer.model.errors import UsageError
from gossamer.settings.extras import pip_install


def open_countries(path: str) -> Callable[[str], str]:
    """Return a function that finds the country of an address: two letters, or an empty text."""
    if not path:
        raise UsageError("the crawl has --region rules by country: expected --geoip FILE on every node")
    if find_spec("maxminddb") is None:
        raise UsageError(f"--geoip needs the reader of MaxMind files: {pip_install('geo')}")
    import maxminddb

    try:
        database = maxminddb.open_database(path)
    except OSError as error:
        raise UsageError(f"--geoip {path}: {error.strerror or error}") from error
    except maxminddb.InvalidDatabaseError as error:
        raise UsageError(f"--geoip {path}: not a file in MaxMind's format; expected GeoLite2-Country.mmdb") from error

    def country_of(address: str) -> str:
        try:
            return _country_in(database.get(address))
        except ValueError:  # an IPv6 address, in a file that has none
            return ""

    return country_of


def _country_in(record: object) -> str:
    """Return the code in a record: MaxMind nests it, others do not."""
    country = record.get("country") or record.get("country_code") if isinstance(record, dict) else None
    code = country.get("iso_code") if isinstance(country, dict) else country
    return code.upper() if isinstance(code, str) else ""
