"""What the registry names is there, and settings know the form of its URLs."""

from __future__ import annotations

import pytest

from gossamer.backends import registry
from gossamer.backends.registry import BACKENDS, Purpose
from gossamer.model.errors import UsageError
from gossamer.ports.setup import SetupOptions
from gossamer.settings.stores import check_catalogs, check_feeds, check_stores

_URLS = {
    "cassandra": "cassandra://h:1/keyspace",
    "kafka": "kafka://h:1/topic",
    "mongodb": "mongodb://h:1/database",
    "postgresql": "postgresql://h:1/database",
    "s3": "s3://bucket/prefix",
}


@pytest.mark.parametrize(("purpose", "scheme"), BACKENDS, ids=lambda part: getattr(part, "value", part))
def test_every_function_that_is_named_is_there(purpose: Purpose, scheme: str) -> None:
    backend = BACKENDS[purpose, scheme]
    for name in filter(None, (backend.opens, backend.checks, backend.creates)):
        assert callable(registry._load(backend, scheme, name))
    assert set(backend.options) <= set(SetupOptions.__struct_fields__)


def test_settings_accept_the_urls_of_what_can_be_opened() -> None:
    for purpose, scheme in BACKENDS:
        if purpose in {Purpose.PAGES, Purpose.OBJECTS}:
            check_stores([_URLS[scheme]])
        elif purpose is Purpose.CATALOG:
            check_catalogs([_URLS[scheme]])
        elif purpose is Purpose.FEED:
            check_feeds([_URLS[scheme]], ["warc"])


def test_a_missing_client_library_is_named_with_the_extra_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name == "cassandra" else object())
    with pytest.raises(UsageError, match=r"^kafka:// needs the package cassandra: .*gossamer\[kafka\]'$"):
        registry.open_shared("kafka://h:1/crawl?cassandra=h:1/keyspace")
