"""The pages: documentation packages of Debian under one root, and which of them links lead to.

The reference walk reads files, not HTTP, with a parser that no rival measured here but the tuned
script uses. A page is an HTML file; `…/` is its `index.html`. Costs 3 s.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser

# name in the site -> Debian package, where its HTML is
PACKAGES = {
    "python": ("python3.11-doc", Path("/usr/share/doc/python3.11/html")),
    "postgresql": ("postgresql-doc-15", Path("/usr/share/doc/postgresql-doc-15/html")),
    "django": ("python-django-doc", Path("/usr/share/doc/python-django-doc/html")),
}
START = "/index.html"
LONELY = "/lonely.html"  # a page without links: what a rival needs to start and end
_HOME = "<!DOCTYPE html><html lang=en><meta charset=utf-8><title>{title}</title><p>{text}</p>"


def build_root(folder: Path) -> Path:
    """Make the root of the site: a start page, and a link to each package's folder."""
    missing = [package for package, source in PACKAGES.values() if not (source / "index.html").exists()]
    if missing:
        raise SystemExit(f"peers: not installed: {', '.join(missing)}; expected: make bench-tools")
    folder.chmod(0o755)  # nginx, started by root, reads as somebody else
    root = folder / "root"
    root.mkdir()
    for name, (_, source) in PACKAGES.items():
        (root / name).symlink_to(source)
    links = " ".join(f'<a href="/{name}/index.html">{name}</a>' for name in PACKAGES)
    (root / START[1:]).write_text(_HOME.format(title="Documentation", text=links), "utf-8")
    (root / LONELY[1:]).write_text(_HOME.format(title="Lonely", text="Nothing leads on from here."), "utf-8")
    return root


def reachable_pages(root: Path) -> dict[str, int]:
    """Return the pages that links lead to from the start page, each with its size."""
    found: dict[str, int] = {}
    todo = deque([START])
    known = {START}
    while todo:
        path = todo.popleft()
        try:
            content = (root / path[1:]).read_bytes()
        except OSError:
            continue
        found[path] = len(content)
        for target in _targets(path, content):
            if target not in known:
                known.add(target)
                todo.append(target)
    return found


def _targets(path: str, content: bytes) -> set[str]:
    hrefs = {node.attributes.get("href") or "" for node in LexborHTMLParser(content).css("a[href]")}
    return {target for href in hrefs if (target := _target(path, href)) and target.endswith((".html", ".htm"))}


def _target(path: str, href: str) -> str:
    try:
        parts = urlsplit(urljoin(f"http://site.test{path}", href.strip()))
    except ValueError:
        return ""
    return page_name(unquote(parts.path)) if parts.netloc == "site.test" else ""


def page_name(path: str) -> str:
    """Return the one name of a page: a folder is its index."""
    return path + "index.html" if path.endswith("/") else path
