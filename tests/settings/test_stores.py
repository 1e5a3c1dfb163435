"""What `--store` and `--catalog` accept, and that passwords are written nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.model.errors import UsageError
from gossamer.settings.load import from_environment, merged, settings_for_known, to_toml
from gossamer.settings.stores import (
    check_catalogs,
    check_feeds,
    check_stores,
    complete_catalog,
    complete_store,
    masked_store,
)

WITH_PASSWORD = "mongodb://crawler:se%40cret@db1.test:27017,db2.test/pages?authSource=admin"
MASKED = "mongodb://crawler:***@db1.test:27017,db2.test/pages?authSource=admin"


@pytest.mark.parametrize(
    "store",
    [
        "warc",
        "s3://my-bucket",
        "s3://my.bucket/",
        "s3://bucket/crawls/2024_1",
        "mongodb://localhost/pages",
        "mongodb://[::1]:27017/pages",
        WITH_PASSWORD,
        MASKED,
    ],
)
def test_a_store_is_accepted(store: str) -> None:
    check_stores(["files", store])


@pytest.mark.parametrize(
    ("store", "says"),
    [
        ("tape", "unknown store; expected warc, files, s3://bucket/prefix or mongodb://host:port/database"),
        ("gs://bucket/x", "unknown store"),
        ("s3://", "not the name of a bucket"),
        ("s3://My_Bucket/x", "not the name of a bucket"),
        ("s3://bucket/a//b", "a prefix has"),
        ("s3://bucket/../b", "a prefix has"),
        ("s3://bucket/a?region=x", "a prefix has"),
        ("s3://key:se%40cret@bucket/x", "they come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("mongodb:///pages", "not a host with a port"),
        ("mongodb://u:se%40cret@[::1/pages", "not a host with a port"),
        ("mongodb://u:se%40cret@host:port/pages", "not a host with a port"),
        ("mongodb://localhost", "not the name of a database"),
        ("mongodb://localhost/a/b", "not the name of a database"),
        ("mongodb://u:se%40cret@localhost/", "not the name of a database"),
        ("ftp://u:se%40cret@host/x", "unknown store"),
    ],
)
def test_what_is_no_store_is_refused_without_showing_its_password(store: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_stores([store])
    (line,) = str(refused.value).splitlines()
    assert says in line
    assert "cret" not in line


def test_two_stores_of_one_kind_are_refused() -> None:
    with pytest.raises(UsageError, match="2 stores of the kind s3://"):
        check_stores(["s3://bucket/a", "s3://bucket/b"])
    check_stores(["s3://bucket/a", "s3://bucket/a", "mongodb://h/d", "warc"])


def test_a_password_is_not_in_the_stored_settings_nor_in_a_complaint() -> None:
    text = to_toml(merged(("flags", {"store": [WITH_PASSWORD, "warc"]})))
    assert f'store = ["{MASKED}","warc"]' in text
    with pytest.raises(UsageError) as refused:
        merged(("a.toml", {"store": {WITH_PASSWORD: "x@y"}}))
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize("password", ["p@ss", "a/b@c:d", "p@q/r", "p/q"])
def test_a_password_that_is_not_escaped_is_masked_up_to_its_end(password: str) -> None:
    assert masked_store(f"mongodb://u:{password}@host/pages") == "mongodb://u:***@host/pages"


@pytest.mark.parametrize("url", ["mongodb://u:p@q/r@host/pages", "mongodb://u:p@host/pages?appName=a@b"])
def test_an_at_sign_outside_user_and_password_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="%40"):
        check_stores([url])


def test_a_crawl_continues_with_the_password_given_again_or_from_the_environment(tmp_path: Path) -> None:
    stored = tmp_path / "crawl.toml"
    stored.write_text(to_toml(merged(("flags", {"store": [WITH_PASSWORD]}))), "utf-8")
    again = settings_for_known(stored, [("flags", {"store": [WITH_PASSWORD]})])
    assert again.store == (WITH_PASSWORD,)
    with pytest.raises(UsageError, match="--store cannot change") as refused:
        settings_for_known(stored, [("flags", {"store": [WITH_PASSWORD.replace("db1", "db3")]})])
    assert "cret" not in str(refused.value)
    (store,) = settings_for_known(stored, []).store
    assert complete_store(store, {"GOSSAMER_MONGODB_PASSWORD": "se@cret"}) == WITH_PASSWORD
    with pytest.raises(UsageError, match="GOSSAMER_MONGODB_PASSWORD"):
        complete_store(store, {})


def test_the_password_of_a_user_may_come_from_the_environment_alone() -> None:
    known = {"GOSSAMER_MONGODB_PASSWORD": "x"}
    assert complete_store("mongodb://u@h/d", known) == "mongodb://u:x@h/d"
    assert complete_store("mongodb://u:y@h/d", known) == "mongodb://u:y@h/d"
    assert complete_store("mongodb://h/d", known) == "mongodb://h/d"
    assert complete_store("mongodb://u@h/d", {}) == "mongodb://u@h/d"
    assert complete_store("s3://b/p", known) == "s3://b/p"


def test_the_variables_with_passwords_are_no_settings() -> None:
    names = ("GOSSAMER_MONGODB_PASSWORD", "GOSSAMER_REDIS_PASSWORD", "GOSSAMER_REDIS_USER")
    assert from_environment(dict.fromkeys(names, "x")) == {}


# -- catalogs -------------------------------------------------------------------------------------

CATALOG = "postgresql://me:se%40cret@db1.test:5432,db2.test/crawls/books?sslmode=require"


@pytest.mark.parametrize(
    "catalog", ["postgresql://localhost/db", "postgresql://[::1]:5432/db/", "postgresql://u@h/db/my.schema-1", CATALOG]
)
def test_a_catalog_is_accepted(catalog: str) -> None:
    check_catalogs([catalog, "postgresql://elsewhere/db"])


@pytest.mark.parametrize(
    ("catalog", "says"),
    [
        ("tables", "unknown catalog; expected postgresql://host:port/database"),
        ("oracle://u:se%40cret@h/keyspace", "unknown catalog"),
        ("mongodb://u:se%40cret@h", "not the name of a database"),
        ("mongodb://u:se%40cret@h/a/b", "not the name of a database"),
        ("cassandra://u:se%40cret@h", "not the name of a keyspace"),
        ("cassandra://u:se%40cret@h/Upper", "not the name of a keyspace"),
        ("cassandra://u:se%40cret@h/system_auth", "not the name of a keyspace"),
        ("cassandra://u:se%40cret@/keyspace", "not a host with a port"),
        ("postgresql:///db", "not a host with a port"),
        ("postgresql://u:se%40cret@[::1/db", "not a host with a port"),
        ("postgresql://u:se%40cret@h", "not the name of a database"),
        ("postgresql://h/db/a/b", "not the name of a schema"),
        ("postgresql://h/db/pg_mine", "not the name of a schema"),
        ("postgresql://h/db/information_schema", "not the name of a schema"),
        ("postgresql://h/db#x", "options follow a ?"),
        ("postgresql://u:se@cret/x@h/db", "an @ that does not end user and password is written %40"),
        ("postgresql://h/db?password=secret", "a password is written before the @"),
    ],
)
def test_what_is_no_catalog_is_refused_without_showing_its_password(catalog: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_catalogs([catalog])
    (line,) = str(refused.value).splitlines()
    assert says in line
    assert "cret" not in line.replace("?password=secret", "")


def test_one_catalog_cannot_be_named_twice() -> None:
    with pytest.raises(UsageError, match="postgresql://h/db/gossamer_catalog is named 2 times"):
        check_catalogs(["postgresql://u@h/db", "postgresql://H/db/gossamer_catalog?sslmode=require"])
    check_catalogs(["postgresql://h/db", "postgresql://h/db/other"])
    with pytest.raises(UsageError, match="cassandra://h:1,h:2/k is named 2 times"):
        check_catalogs(["cassandra://u@h:1,h:2/k", "cassandra://H:1,h:2/k?dc=west"])


@pytest.mark.parametrize(
    ("feed", "says"),
    [
        ("redis://u:se%40cret@h/x", "unknown feed; expected kafka://broker:port"),
        ("kafka://u:se%40cret@h", "not the name of a topic"),
        ("kafka://u:se%40cret@h/a/b", "not the name of a topic"),
        ("kafka://u:se%40cret@/t", "not a host with a port"),
        ("kafka://h/..", "not the name of a topic"),
        ("kafka://h/t?sasl.password=x", "GOSSAMER_KAFKA_PASSWORD"),
    ],
)
def test_what_is_no_feed_is_refused_without_showing_its_password(feed: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_feeds([feed], ["warc"])
    assert says in str(refused.value)
    assert "cret" not in str(refused.value)


def test_a_feed_needs_an_archive_and_is_named_once() -> None:
    check_feeds(["kafka://u:p@h:1,h:2/t?security.protocol=SASL_SSL", "kafka://h:1,h:2/u"], ["warc"])
    with pytest.raises(UsageError, match="add --store warc"):
        check_feeds(["kafka://h/t"], ["files"])
    with pytest.raises(UsageError, match="kafka://h/t is named 2 times"):
        check_feeds(["kafka://u@h/t", "kafka://H/t"], ["warc"])


def test_the_password_of_a_feed_is_not_stored(tmp_path: Path) -> None:
    stored = tmp_path / "crawl.toml"
    stored.write_text(to_toml(merged(("flags", {"feed": ["kafka://u:se%40cret@h:1/t"]}))))
    assert "cret" not in stored.read_text()
    assert settings_for_known(stored, []).feed == ("kafka://u:***@h:1/t",)


def test_the_password_of_a_catalog_comes_from_the_environment_when_a_crawl_continues() -> None:
    masked = masked_store("cassandra://u:se%40cret@h:1,h:2/k")
    assert masked == "cassandra://u:***@h:1,h:2/k"
    found = complete_catalog(masked, {"GOSSAMER_CASSANDRA_PASSWORD": "p@ss"})
    assert found == "cassandra://u:p%40ss@h:1,h:2/k"
    with pytest.raises(UsageError, match="set GOSSAMER_CASSANDRA_PASSWORD, or pass --catalog with the password again"):
        complete_catalog(masked, {})


def test_the_password_of_a_catalog_is_not_stored_and_its_client_looks_for_another(tmp_path: Path) -> None:
    stored = tmp_path / "crawl.toml"
    stored.write_text(to_toml(merged(("flags", {"catalog": [CATALOG]}))))
    assert "cret" not in stored.read_text()
    (catalog,) = settings_for_known(stored, []).catalog
    assert complete_catalog(catalog, {}) == CATALOG.replace(":se%40cret", "")
    assert complete_catalog(CATALOG, {}) == CATALOG
    assert complete_catalog("postgresql://h/db", {}) == "postgresql://h/db"
    assert settings_for_known(stored, [("flags", {"catalog": [CATALOG]})]).catalog == (CATALOG,)
    with pytest.raises(UsageError, match="--catalog cannot change") as refused:
        settings_for_known(stored, [("flags", {"catalog": [CATALOG.replace("db1", "db3")]})])
    assert "cret" not in str(refused.value)
