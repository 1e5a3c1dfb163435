"""Is every page of real documentation fetched that links lead to, with default settings? By real crawls.

python -m benchmarks.documentation [--folder DIR] [--only NAME …] [--one-host] [--max-depth N] [--python PATH]

Packages of Debian (`PACKAGES`) are downloaded into DIR (benchmarks/results/documentation), unpacked, and served by
nginx over loopback. Each is crawled by the program, and what nginx served is compared with a walk over the files by
another parser. A page that is missing gets the reason that `gossamer missing` names. `--one-host` crawls all of them
together, below one start page: so large a host is where a rule about traps has most opportunities to err. Fails if a
page is missing because of a trap rule, or for no reason. Needs apt-get and nginx (make bench-tools), 9 GB, and half
an hour.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter, deque
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, unquote, urljoin, urlsplit

import msgspec
from benchmarks.peers.pages import page_name
from benchmarks.peers.server import ADDRESS, Nginx
from msgspec import Struct
from selectolax.lexbor import LexborHTMLParser

PACKAGES = """
ant-doc apache2-doc autoconf-doc bash-doc bind9-doc clang-14-doc cmake-doc cppreference-doc-en-html debian-faq
debian-handbook debian-policy developers-reference erlang-doc exim4-doc-html gap-doc ghc-doc git-doc grass-doc
guile-3.0-doc libboost1.74-doc libcairo2-doc libclutter-1.0-doc libcommons-lang3-java-doc libeigen3-doc
libgdk-pixbuf2.0-doc libgeos-doc libghc-aeson-doc libghc-lens-doc libglib2.0-doc libgtk-3-doc libgtk-4-doc
libpango1.0-doc libpcl-doc libsdl2-doc libsoup-3.0-doc libstdc++-12-doc libxml2-doc lilypond-doc-html
linux-doc-6.1 llvm-14-doc maxima-doc ncurses-doc nim-doc nodejs-doc ntp-doc octave-doc opencv-doc
openjdk-17-doc perl-doc pari-doc postfix-doc postgis-doc postgresql-doc-15 proftpd-doc python-astropy-doc
python-babel-doc python-cryptography-doc python-django-doc python-flask-doc python-h5py-doc python-jinja2-doc
python-pandas-doc python-requests-doc python-scipy-doc python-scrapy-doc python-sqlalchemy-doc
python-sympy-doc python-tornado-doc python-werkzeug-doc python3.11-doc qtbase5-doc-html qtcreator-doc
qtdeclarative5-doc-html qtmultimedia5-doc-html qtwebengine5-doc-html r-doc-html racket-doc rust-doc scala-doc
singular-doc slib sphinx-doc sqlite3-doc swi-prolog-doc tomcat10-docs twisted-doc varnish-doc wx3.2-doc
xapian-doc zsh-doc
""".split()
MAX_PAGES = 1_000_000
MAX_BYTES = 5_000_000  # of a page, see --max-bytes
MAX_DEPTH = 10  # the program's default
MIN_PAGES = 10
TRAP_RULES = {"quarantine", "calendar", "repeated_segment", "path_too_deep", "soft_404", "oversize_host"}
_HTML = (".html", ".htm", ".xhtml")
_START = "/index.html"
_LINKS = {"a": "href", "area": "href", "frame": "src", "iframe": "src", "meta": "content"}
_LINK_SELECTOR = "a[href], area[href], frame[src], iframe[src], meta[http-equiv=refresh i]"


class Found(Struct, frozen=True):
    """What a crawl fetched, and why it did not fetch the rest."""

    expected: int
    fetched: int
    pages: int  # a file that has several paths is as many pages
    requests: int
    held: dict[str, int]
    reasons: Counter[str]
    missing: list[str]
    cpu_ms_per_page: float


def download(folder: Path, packages: list[str]) -> None:
    """Have each package unpacked in a folder of its own."""
    debs, root = folder / "debs", folder / "root"
    for each in (debs, root):
        each.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in packages if not (root / name).exists()]
    if not wanted:
        return
    known = {name for name in wanted if _is_known(name)}
    for name in sorted(set(wanted) - known):
        print(f"documentation: Debian has no {name} here", file=sys.stderr)
    if not known:
        return
    # Files of another user cannot be written by apt's own: it warns, and writes them as ours.
    subprocess.run(["apt-get", "download", "-qq", *sorted(known)], check=True, cwd=debs, stderr=subprocess.DEVNULL)
    for deb in debs.glob("*.deb"):
        name = deb.name.partition("_")[0]
        if name in known:
            subprocess.run(["dpkg-deb", "-x", str(deb), str(root / name)], check=True)


def _is_known(package: str) -> bool:
    done = subprocess.run(["apt-cache", "policy", package], capture_output=True, text=True, check=False)
    return "Candidate:" in done.stdout and "Candidate: (none)" not in done.stdout


def build_site(root: Path, folder: Path, packages: list[str], *, one_host: bool) -> dict[str, str]:
    """Make the root of a server: a folder per package; return the path of the start page of each."""
    folder.chmod(0o755)
    starts = {}
    for name in packages:
        pages = sorted(path for path in (root / name).rglob("*") if path.suffix in _HTML and path.is_file())
        if len(pages) < MIN_PAGES:
            continue
        top = Path(os.path.commonpath([str(path.parent) for path in pages]))
        (folder / name).symlink_to(top)
        if (top / "index.html").exists():
            starts[name] = f"/{name}/index.html"
        else:
            start = folder / f"{name}.start.html"
            start.write_text(_index(f"/{name}/", _tops(top, pages)), "utf-8")
            starts[name] = f"/{start.name}"
    if one_host:
        (folder / _START[1:]).write_text(_index("", list(starts.values())), "utf-8")
        return {"all packages": _START}
    return starts


def _tops(top: Path, pages: list[Path]) -> list[str]:
    """Return the pages that a reader begins with: of each folder below the top, the least deep index, or all pages."""
    chosen = []
    for first in sorted({path.relative_to(top).parts[0] for path in pages}):
        below = [path for path in pages if path.relative_to(top).parts[0] == first]
        indices = [path for path in below if path.stem == "index"] or below
        least = min(len(path.parts) for path in indices)
        chosen += [str(path.relative_to(top)) for path in indices if len(path.parts) == least]
    return chosen


def _index(prefix: str, paths: list[str]) -> str:
    links = "\n".join(f'<li><a href="{quote(prefix + path)}">{path}</a>' for path in paths)
    return f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Documentation</title><ul>{links}</ul>"


def walk(
    site: Path,
    start: str,
    max_bytes: int | None = None,
    without: frozenset[str] = frozenset(),
) -> dict[str, tuple[str, int]]:
    """Follow the links of files, or those in so many bytes of each; return each file with one path and its distance.

    Files that are to be left out are not read. Folders are linked to each other, so that a file has several paths: a
    site that repeats itself.
    """
    depths = {start: 0}
    todo = deque([start])
    found: dict[str, tuple[str, int]] = {}
    while todo:
        path = todo.popleft()
        file = os.path.realpath(site / path[1:])
        if file in found or file in without:
            continue
        try:
            content = Path(file).read_bytes()[:max_bytes]
        except (OSError, ValueError):
            continue
        found[file] = path, depths[path]
        for target in targets(path, content):
            if target not in depths:
                depths[target] = depths[path] + 1
                todo.append(target)
    return found


def targets(path: str, content: bytes) -> set[str]:
    """Return the pages that a page leads to."""
    tree = LexborHTMLParser(content)
    robots = tree.css_first("meta[name=robots]")
    if robots is not None and "nofollow" in (robots.attributes.get("content") or ""):
        return set()
    base = tree.css_first("base[href]")
    here = f"http://{ADDRESS}{quote(path)}"
    if base is not None:
        here = urljoin(here, base.attributes.get("href") or "")
    found = set()
    for node in tree.css(_LINK_SELECTOR):
        href = node.attributes.get(_LINKS[node.tag or ""]) or ""
        if node.tag == "meta":
            at = href.lower().find("url=")
            href = href[at + 4 :].strip("'\" ") if at >= 0 else ""
        if "nofollow" in (node.attributes.get("rel") or "") or "\\" in href:
            continue
        try:
            parts = urlsplit(urljoin(here, href.strip()))
        except ValueError:
            continue
        if parts.netloc == ADDRESS and parts.scheme == "http":
            target = page_name(unquote(parts.path))
            if target.endswith(_HTML):
                found.add(target)
    return found


def crawl(server: Nginx, site: Path, start: str, command: list[str], out: Path) -> Found:
    """Crawl from a start page, and compare with the walk."""
    expected = walk(site, start)
    server.count_from_here()
    command = [*command, server.url(quote(start)), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(f"documentation: {' '.join(command)} failed: {done.stderr}")
    summary = msgspec.json.decode(done.stdout.splitlines()[-1])
    served = server.served()
    files = {os.path.realpath(site / path[1:]) for path in served}
    missing = sorted(expected.keys() - files)
    reasons = _explained(site, start, expected, missing, out) if missing else Counter()
    return Found(
        expected=len(expected),
        fetched=len(files),
        pages=len(served),
        requests=served.requests,
        held=summary["held"],
        reasons=reasons,
        missing=[expected[file][0] for file in missing],
        cpu_ms_per_page=1000 * summary["cpu_seconds"] / max(1, summary["pages"]),
    )


def _explained(
    site: Path, start: str, expected: dict[str, tuple[str, int]], missing: list[str], out: Path
) -> Counter[str]:
    """Return why files are missing: what the crawl says, or what follows from that."""
    said = _reasons(out)
    reasons = {file: said[expected[file][0]] for file in missing if expected[file][0] in said}
    without = walk(site, start, MAX_BYTES, frozenset(reasons))
    for file in missing:
        if file not in reasons:
            _, distance = expected[file]
            deep = f"at distance {distance}" if distance > MAX_DEPTH else ""
            behind = "" if file in without else "only behind a missing page, or beyond --max-bytes of a page"
            reasons[file] = deep or behind or f"UNKNOWN: {expected[file][0]}"
    return Counter(reasons.values())


def is_excuse(reason: str) -> bool:
    """Return whether a page may be missing for a reason: for one that is known, and is no rule about traps."""
    return not reason.startswith("UNKNOWN") and not TRAP_RULES & set(reason.split())


def _reasons(out: Path) -> dict[str, str]:
    """Return why pages are missing, by their path, as `gossamer missing` has it."""
    command = [sys.executable, "-m", "gossamer", "missing", str(out), "--json", "--limit", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    reasons = {}
    for line in done.stdout.splitlines()[1:]:
        row = msgspec.json.decode(line)
        reason = f"{row['outcome']} {row['rule'] or row['status'] or ''}".strip()
        reasons[page_name(unquote(urlsplit(row["url"]).path))] = reason
    return reasons


def main() -> int:
    """Print a line per crawl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results/documentation"))
    parser.add_argument("--only", nargs="*", default=PACKAGES)
    parser.add_argument("--one-host", action="store_true")
    parser.add_argument("--max-depth", help="as the program's; by default that of the program")
    parser.add_argument("--python", default=sys.executable, help="that of another version, to compare with")
    parser.add_argument("--keep", type=Path, help="where crawl folders stay")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    download(folder, arguments.only)
    command = [arguments.python, "-m", "gossamer", "crawl", "-n", str(MAX_PAGES), "--politeness-ms", "0"]
    command += ["--json", "--no-progress", *(["--max-depth", arguments.max_depth] if arguments.max_depth else [])]
    totals: Counter[str] = Counter()
    with TemporaryDirectory() as made, TemporaryDirectory() as state:
        site = Path(made)
        packages = sorted(name for name in arguments.only if (folder / "root" / name).exists())
        starts = build_site(folder / "root", site, packages, one_host=arguments.one_host)
        Path(state).chmod(0o755)
        with Nginx(Path(state), site, core=None) as server:
            for name, start in starts.items():
                with TemporaryDirectory() as temporary:
                    out = (arguments.keep or Path(temporary)) / name.replace(" ", "-")
                    found = crawl(server, site, start, command, out)
                totals["packages"] += 1
                totals["expected"] += found.expected
                totals["fetched"] += found.fetched
                totals["pages"] += found.pages
                totals["missing"] += len(found.missing)
                totals["held"] += sum(found.held.values())
                totals["unexcused"] += sum(count for reason, count in found.reasons.items() if not is_excuse(reason))
                why = "; ".join(f"{count} {reason}" for reason, count in found.reasons.most_common(4))
                print(
                    f"| {name} | {found.expected} | {found.fetched} | {found.pages} | {len(found.missing)} "
                    f"| {found.held or ''} | {found.cpu_ms_per_page:.2f} | {why} |",
                    flush=True,
                )
                for path in found.missing[:3]:
                    print(f"    {path}", flush=True)
    print(dict(totals))
    return 1 if totals["held"] or totals["unexcused"] else 0


if __name__ == "__main__":
    sys.exit(main())
