from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.core.frontier.priority import QueueOrder
from gossamer.core.links.scope import Reach
from gossamer.model.errors import UsageError
from gossamer.settings.budget import usable_cores
from gossamer.settings.identity import robots_token_of
from gossamer.settings.load import (
    changed_fixed_option,
    completed,
    from_environment,
    from_file,
    merged,
    settings_for_known,
    settings_for_new,
    to_toml,
)
from gossamer.settings.model import Group, PaceSetting, Settings, options


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "crawl.toml"
    path.write_text(text, "utf-8")
    return path


def _complaint(what: pytest.ExceptionInfo[UsageError]) -> str:
    message = str(what.value)
    assert "\n" not in message
    assert what.value.exit_status == 2
    return message


def test_defaults_stand_without_any_source() -> None:
    settings = merged()
    assert (settings.politeness_ms, settings.host_connections, settings.connections) == (1000, 1, 256)
    assert (settings.exclude_pattern, settings.default_excludes) == ((), True)


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, "max-pages = 1\nmax-depth = 1\npoliteness_ms = 1\ntimeout = 2.5\n")
    environment = from_environment({"GOSSAMER_MAX_PAGES": "2", "GOSSAMER_MAX_DEPTH": "2", "PATH": "/bin"})
    settings = merged((str(path), from_file(path)), ("environment", environment), ("flags", {"max_pages": 3}))
    assert (settings.max_pages, settings.max_depth, settings.politeness_ms, settings.timeout) == (3, 2, 1, 2.5)


def test_every_kind_of_value_from_a_file(tmp_path: Path) -> None:
    text = """
order = "score"
scope = "prefix"
parse-pdf-links = false
include-pattern = ["/a", "/b"]
allow-network = ["10.0.0.0/8"]
dns = "127.0.0.1:5353"
max-time = 60
[[pace]]
host = "*.example.org"
delay = 0.5
connections = 4
"""
    settings = merged(("file", from_file(_file(tmp_path, text))))
    assert (settings.order, settings.scope, settings.parse_pdf_links) == (QueueOrder.SCORE, Reach.PREFIX, False)
    assert settings.include_pattern == ("/a", "/b")
    assert settings.max_time == 60.0
    assert settings.pace == (PaceSetting("*.example.org", 0.5, 4),)


def test_every_kind_of_value_from_the_environment() -> None:
    values = from_environment(
        {
            "GOSSAMER_ORDER": "random",
            "GOSSAMER_BLOCK_HOST": "a.test,b.test",
            "GOSSAMER_MASK_QUERIES": "true",
            "GOSSAMER_FOLLOW_DUPLICATES": "0",
            "GOSSAMER_RETRY_WAIT": "0.5",
            "GOSSAMER_CONFIG": "x.toml",
            "GOSSAMER_REQUIRE_ENGINES": "redis",
        }
    )
    settings = merged(("environment", values))
    assert (settings.order, settings.block_host) == (QueueOrder.RANDOM, ("a.test", "b.test"))
    assert (settings.mask_queries, settings.follow_duplicates, settings.retry_wait) == (True, False, 0.5)


def test_an_unknown_key_is_named_with_what_was_meant(tmp_path: Path) -> None:
    path = _file(tmp_path, "max-pagez = 1\n")
    with pytest.raises(UsageError) as what:
        from_file(path)
    message = _complaint(what)
    assert str(path) in message
    assert "'max-pagez'" in message
    assert "did you mean 'max-pages'" in message


def test_an_unknown_variable_is_named() -> None:
    with pytest.raises(UsageError) as what:
        from_environment({"GOSSAMER_MAX_PAGE": "1"})
    assert "GOSSAMER_MAX_PAGE is not a setting; did you mean 'max-pages'?" in _complaint(what)


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ({"max_pages": "many"}, ["flags", "max-pages", "'many'"]),
        ({"max_pages": 0}, ["flags", "max-pages", "0", "at least 1"]),
        ({"politeness_ms": -1}, ["politeness-ms", "-1"]),
        ({"order": "best"}, ["order", "'best'"]),
        ({"timeout": 0}, ["timeout = 0: expected a number over 0"]),
        ({"timeout": 1e10}, ["timeout = 1e+10: expected at most 1,000,000,000 seconds"]),
        ({"max_time": 0}, ["flags: max-time = 0: expected a number over 0, or none"]),
        ({"max_time": float("inf")}, ["max-time = inf: expected at most 1,000,000,000 seconds"]),
        ({"max_pages_per_host": 0}, ["max-pages-per-host = 0: expected a whole number of at least 1, or none"]),
        ({"max_wait": 0}, ["max-wait = 0: a host waits longer between two requests", "expected at least 1"]),
        ({"max_wait": 2, "politeness_ms": 2500}, ["max-wait = 2: ", "expected at least 2.5"]),
        ({"scope": "world"}, ["scope", "'world'"]),
        ({"include_pattern": ["(a"]}, ["include-pattern", "'(a'", "regular expression"]),
        ({"exclude_pattern": ["["]}, ["exclude-pattern", "'['", "regular expression"]),
        ({"accept": ["png"]}, ["accept", "'png'", "expected image/png"]),
        ({"user_agent": "Mozilla/5.0 (X11; Linux)"}, ["user-agent", "names no robot", "--robots-token"]),
        ({"user_agent": "1.0 (+me)"}, ["user-agent", "names no robot"]),
        ({"robots_token": "My Bot"}, ["robots-token", "'My Bot'", "letters"]),
        ({"allow_network": ["10.0.0.0/99"]}, ["allow-network", "10.0.0.0/8"]),
        ({"dns": "not an address"}, ["dns", "127.0.0.1:53"]),
        ({"store": ["tape"]}, ["store", "'tape'"]),
        (
            {"pace": [{"host": "a", "speed": 1}]},
            ["flags: [[pace]]", "'speed'", "expected host, delay, connections"],
        ),
        ({"pace": [{"host": "a"}, {"host": "b", "delay-ms": 1}]}, ["'delay-ms'", "did you mean 'delay' (in seconds)?"]),
        ({"pace": [{"host": "a", "connection": 1}]}, ["'connection'", "did you mean 'connections'?"]),
    ],
)
def test_a_bad_value_is_reported_in_one_line(values: dict[str, object], parts: list[str]) -> None:
    with pytest.raises(UsageError) as what:
        merged(("flags", values))
    message = _complaint(what)
    for part in parts:
        assert part in message, message


def test_the_source_of_a_bad_value_is_the_one_that_won() -> None:
    with pytest.raises(UsageError) as what:
        merged(("a.toml", {"max_pages": "x"}), ("environment", {"max_pages": "y"}))
    assert _complaint(what).startswith("environment: max-pages = 'y'")


@pytest.mark.parametrize("text", ["max-pages = ", "= 1", "a = 'b"])
def test_a_file_that_is_no_toml(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="not valid TOML") as what:
        from_file(_file(tmp_path, text))
    _complaint(what)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the configuration") as what:
        from_file(tmp_path / "none.toml")
    _complaint(what)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not valid TOML") as what:
        from_file(tmp_path / "binary.toml")
    _complaint(what)


@pytest.mark.parametrize(
    ("values", "named"),
    [({"types": "html", "accept": ("image/png",)}, "accept"), ({"types": "html", "pdf": "deep"}, "pdf")],
)
def test_html_only_and_more_than_html_are_refused_together(values: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=f"^{named} = .*--types html") as what:
        merged(("flags", values))
    _complaint(what)


def test_workers_may_be_left_to_us() -> None:
    for given in ("auto", "0", 0):
        assert merged(("flags", {"workers": given})).workers == usable_cores()


def test_defaults_that_depend_on_other_settings() -> None:
    plain = completed(Settings(), has_domain_list=False)
    assert (plain.max_pages, plain.scope) == (10_000, Reach.DOMAIN)
    assert completed(Settings(), has_domain_list=True).scope is Reach.ANY
    first_pass = completed(Settings(target_unique_domains=5), has_domain_list=False)
    assert (first_pass.max_pages, first_pass.scope) == (None, Reach.ANY)
    assert completed(Settings(max_pages=3, scope=Reach.HOST), has_domain_list=True) == Settings(
        max_pages=3, scope=Reach.HOST
    )


def test_settings_written_to_a_folder_are_read_back_the_same(tmp_path: Path) -> None:
    settings = Settings(
        max_pages=5,
        order=QueueOrder.TIERS,
        scope=Reach.HOST,
        exclude_pattern=('a"b\\d\n\x7f\u00e4', "c"),
        include_pattern=(),
        user_agent="X \u2028 Y",
        pace=(PaceSetting("*.a.test", delay=0.5), PaceSetting("b.test", connections=2)),
        parse_pdf_links=False,
        timeout=1e-3,
    )
    assert merged(("folder", from_file(_file(tmp_path, to_toml(settings))))) == settings
    assert merged(("folder", from_file(_file(tmp_path, to_toml(Settings()))))) == Settings()


def test_a_crawl_that_has_begun_keeps_its_order_but_may_change_its_limits() -> None:
    before = Settings(max_pages=5, order=QueueOrder.BREADTH)
    given = {"order": "score", "max_pages": 9}
    changed = changed_fixed_option(before, given, merged(("flags", given)))
    assert changed is not None
    assert changed.key == "order"
    same = {"order": "breadth", "max_pages": 9}
    assert changed_fixed_option(before, same, merged(("flags", same))) is None


def test_every_setting_is_shown_to_the_user() -> None:
    for option in options():
        assert option.help
        assert option.group in Group
        assert option.key == option.name.replace("_", "-")
    by_name = {option.name: option for option in options()}
    assert by_name["order"].choices == ["breadth", "score", "random", "tiers"]
    assert by_name["scope"].choices == ["page", "prefix", "host", "domain", "any"]
    assert by_name["store"].is_repeatable
    assert not by_name["order"].is_repeatable
    assert by_name["mask_queries"].is_switch


def test_the_robots_token_follows_the_user_agent() -> None:
    assert robots_token_of(merged()) == "gossamer"
    assert robots_token_of(merged(("flags", {"user_agent": "Name/1.0 (+https://example.org)"}))) == "name"
    named = {"user_agent": "Mozilla/5.0 (X11)", "robots_token": "Own-Bot2"}
    assert robots_token_of(merged(("flags", named))) == "own-bot2"


def test_a_crawl_that_has_started_is_not_renamed(tmp_path: Path) -> None:
    stored = tmp_path / "config.toml"
    stored.write_text(to_toml(merged(("flags", {"user_agent": "Name/1.0"}))))
    newer = settings_for_known(stored, [("flags", {"user_agent": "Name/2.0"})])
    assert newer.user_agent == "Name/2.0"
    with pytest.raises(UsageError, match=r"addresses .* as 'name', not 'other'"):
        settings_for_known(stored, [("flags", {"user_agent": "Other/1.0"})])


def test_a_table_for_the_page_says_that_it_is_wanted_and_where(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('max-pages = 5\n[ui]\nlisten = "127.0.0.1:8080"\nmetrics-listen = "127.0.0.1:9090"\n')
    assert from_file(file) == {
        "max_pages": 5, "ui": True, "ui_listen": "127.0.0.1:8080", "metrics_listen": "127.0.0.1:9090",
    }  # fmt: skip
    file.write_text("[ui]\n")
    assert from_file(file) == {"ui": True}
    file.write_text("[ui]\nport = 8080\n")
    with pytest.raises(
        UsageError, match=r"\[ui\]: unknown key 'port'; expected listen, url, token-file or metrics-listen"
    ):
        from_file(file)


def test_no_limit_on_pages_is_said_by_none_and_outlasts_the_run(tmp_path: Path) -> None:
    given = ("flags", {"max_pages": "none", "max_time": "none"})
    settings = settings_for_new([given], has_domain_list=False)
    assert (settings.max_pages, settings.max_time) == (None, None)
    stored = _file(tmp_path, to_toml(settings))
    assert settings_for_known(stored, []).max_pages is None, "not the default"
    assert settings_for_known(stored, [("flags", {"max_pages": "7"})]).max_pages == 7
    lifted = settings_for_known(_file(tmp_path, to_toml(settings_for_new([], has_domain_list=False))), [given])
    assert lifted.max_pages is None
    with pytest.raises(UsageError, match="max-pages = 'many': expected a whole number, or none"):
        merged(("flags", {"max_pages": "many"}))
