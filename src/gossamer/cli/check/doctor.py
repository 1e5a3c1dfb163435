"""`gossamer doctor`: is this machine fit for a crawl? One line per check: ok, or what to do."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import resource
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from gossamer import __version__
from gossamer.foundation.interpreter import NEWEST_TESTED, faults, is_optimised, missing_modules
from gossamer.model.errors import UsageError
from gossamer.runtime.watch.compiled import COST_OF_MISSING, compiled_parts
from gossamer.telemetry.text import count, size

WANTED_FILES = 4096
WANTED_DISK_BYTES = 1_000_000_000
_VERDICTS = {True: "ok  ", None: "WARN", False: "BAD "}  # None: it works, but not as it should
PACKAGES = ("pycurl", "turbohtml", "can-ada", "ada-url", "lmdb", "isal", "msgspec", "pycares", "uvloop")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dns", default="", metavar="HOST:PORT", help="check this DNS server")
    parser.add_argument("--ca-file", default="", metavar="FILE", help="check these certificate authorities too")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1 if something is wrong."""
    checks: list[tuple[str, Callable[[], tuple[bool | None, str]]]] = [
        ("gossamer", lambda: (True, f"{__version__} on Python {platform.python_version()}")),
        ("python", _check_python),
        ("packages", _check_packages),
        ("compiled", _check_compiled),
        ("plugins", _check_installed_plugins),
        ("libcurl", _check_libcurl),
        ("authorities", lambda: _check_trust(arguments.ca_file)),
        ("proxy", _check_proxy),
        ("open files", _check_files),
        ("disk", _check_disk),
        ("ledger", _check_ledger),
        ("names", lambda: _check_names(arguments.dns)),
    ]
    is_fine = True
    for name, check in checks:
        good, text = check()
        is_fine &= good is not False
        print(f"{_VERDICTS[good]} {name:<11} {text}")
    return 0 if is_fine else 1


def _check_python() -> tuple[bool | None, str]:
    name = f"{platform.python_implementation()} {platform.python_version()}"
    if wrong := faults():
        return False, "; ".join(wrong)
    if missing := missing_modules():
        return False, f"{name}, built without {', '.join(missing)}; expected one with all of its modules"
    text = f"{name}, {_build(sysconfig.get_config_vars())}"
    if sys.version_info[:2] > NEWEST_TESTED:
        return None, f"{text}; the newest version that was tested is {'.'.join(map(str, NEWEST_TESTED))}"
    return True, text


def _build(variables: Mapping[str, Any]) -> str:
    """Return how the interpreter was built. A slow one works too, so this is not a failure."""
    if is_optimised(variables):
        return "built with optimisation"
    return (
        "built without profile-guided optimisation: a page costs up to a tenth more CPU; "
        "use the system's own, or one configured with --enable-optimizations"
    )


def _check_packages() -> tuple[bool, str]:
    missing = []
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    return not missing, f"missing: {', '.join(missing)}; reinstall gossamer" if missing else ", ".join(found)


def _check_compiled() -> tuple[bool | None, str]:
    """Return which compiled parts are built. Everything works without them, but slower, so this is not a failure."""
    there, missing = compiled_parts()
    if not missing:
        return True, ", ".join(there)
    return None, f"not built: {', '.join(missing)}; {COST_OF_MISSING}"


def _check_installed_plugins() -> tuple[bool, str]:
    from gossamer.settings.plugins import installed_plugins, state_of

    states = [state_of(plugin) for plugin in installed_plugins()]
    return all(is_good for is_good, _ in states), ", ".join(text for _, text in states) or "none"


def _check_libcurl() -> tuple[bool, str]:
    from gossamer.fetch.curl.libcurl import pycurl

    features = pycurl.version_info()
    has_http2 = bool(features[4] & (1 << 16))
    return True, f"{features[1]}, {features[5]}, HTTP/2 {'on' if has_http2 else 'off'}"


def _check_trust(ca_file: str) -> tuple[bool, str]:
    from gossamer.fetch.trust import certificates_in, trust_sources

    parts = []
    for source in trust_sources(ca_file):
        try:
            parts.append(f"{source.name} {source.path} ({count(len(certificates_in(source)))})")
        except UsageError as error:
            return False, str(error)
    return True, "; ".join(parts)


def _check_proxy() -> tuple[bool, str]:
    """Return which proxies the environment names: a crawl uses them, unless its settings name others."""
    from gossamer.assembly.access import environment_proxies

    try:
        found = environment_proxies(os.environ)
    except UsageError as error:
        return False, str(error)
    if found.http is None and found.https is None:
        return True, "none in the environment"
    parts = [f"{name} through {each.shown}" for name, each in (("http", found.http), ("https", found.https)) if each]
    exempt = f", except {', '.join(found.exempt)}" if found.exempt else ""
    return True, f"from the environment: {', '.join(parts)}{exempt}; --proxy none ignores it"


def _check_files() -> tuple[bool, str]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        hard >= WANTED_FILES,
        f"{count(soft)} now, {count(hard)} at most; a crawl needs {count(WANTED_FILES)} (ulimit -n)",
    )


def _check_disk() -> tuple[bool, str]:
    free = shutil.disk_usage(Path.cwd()).free
    return free >= WANTED_DISK_BYTES, f"{size(free)} free in {Path.cwd()}"


def _check_ledger() -> tuple[bool, str]:
    from gossamer.assembly.run import open_ledger
    from gossamer.model.state import CrawlState

    try:
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".gossamer-doctor-") as folder:
            ledger = open_ledger(Path(folder), is_readonly=False)
            ledger.put_crawl_state(CrawlState())
            ledger.close()
    except OSError as error:
        why = error.strerror or error
        return False, f"{Path.cwd()}: cannot be written to: {why}; go to a folder of your own, or name one by --out"
    return True, "a synced commit works in this folder"


def _check_names(server: str) -> tuple[bool, str]:
    from gossamer.fetch.names.dns import Resolver
    from gossamer.runtime.session.clock import TimeLine

    async def look_up() -> tuple[bool, str]:
        async with Resolver(TimeLine.begin().now, server=server or None) as resolver:
            local = await resolver.resolve("localhost")
            return bool(
                local.addresses
            ), f"localhost is {', '.join(local.addresses)}; other names from {server or 'the system'}"

    return asyncio.run(look_up())
