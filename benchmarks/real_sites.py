"""Is a site of real pages fetched whole? Pages of the real web, each multiplied into a site with its template.

python -m benchmarks.real_sites PAGES [--copies N] [--only NAME …]

PAGES is a folder of HTML files as they were served (articles, shops, forums, front pages: the more kinds, the better;
none come with the project). Each becomes the template of a site of N pages (100): menus, scripts and short texts
stay, and the words of long texts are drawn anew from the page's own. The sites are hosts of their own, served by
nginx over loopback and crawled together with default settings; links of the originals lead outside or nowhere. Fails
if a page is not fetched, or anything is held. Needs nginx (make bench-tools).
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from benchmarks.peers.server import Nginx

_MIN_TEXTS_CHARS = (60, 20)  # of a text that is the page's own, and not of its template; of a page with few texts
_MIN_TEXTS = 3
_FANOUT = 5
_UNTOUCHED = re.compile(r"(<script\b.*?</script>|<style\b.*?</style>|<!--.*?-->)", re.DOTALL | re.IGNORECASE)
_TEXT = [re.compile(rf"(?<=>)[^<>]{{{chars},}}(?=<)") for chars in _MIN_TEXTS_CHARS]
_TITLE = re.compile(r"<title[^>]*>.*?</title>", re.DOTALL | re.IGNORECASE)
_BODY = re.compile(r"<body\b[^>]*>", re.IGNORECASE)
_BASE = re.compile(r"<base\b[^>]*>", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")
_DIRECTIVES = re.compile(r"""<meta[^>]+(?:robots|refresh)[^>]*>|<link[^>]+canonical[^>]*>""", re.IGNORECASE)


class Template:
    """A real page, and the words of its long texts."""

    def __init__(self, html: str) -> None:
        html = _DIRECTIVES.sub("", _BASE.sub("", html))
        self._parts = _UNTOUCHED.split(html)
        for self._text in _TEXT:
            texts = [text for part in self._parts[::2] for text in self._text.findall(part) if _WORD.search(text)]
            if len(texts) >= _MIN_TEXTS:
                break
        self.texts = len(texts)
        self._words = [word for text in texts for word in _WORD.findall(text)]

    def page(self, site: int, number: int, links: list[str]) -> str:
        """Return a page with other words."""
        chance = random.Random(f"{site}/{number}")

        def anew(found: re.Match[str]) -> str:
            return " ".join(chance.choices(self._words, k=max(1, len(found[0].split())))) + "."

        parts = [self._text.sub(anew, part) if at % 2 == 0 else part for at, part in enumerate(self._parts)]
        title = " ".join(chance.choices(self._words, k=5))
        menu = "<nav>" + " ".join(f'<a href="{link}">{link}</a>' for link in links) + "</nav>"
        # In front: of a page's links only the first 1,000 new ones are followed.
        body = next((at for at in range(0, len(parts), 2) if _BODY.search(parts[at])), None)
        if body is None:
            parts.insert(0, menu)
        else:
            parts[body] = _BODY.sub(lambda found: found[0] + menu, parts[body], count=1)
        return _TITLE.sub(f"<title>{title}</title>", "".join(parts), count=1)

    def slug(self, site: int, number: int) -> str:
        """Return a name for a page's address."""
        words = random.Random(f"{site}:{number}").choices(self._words, k=3)
        return "-".join(word.lower() for word in words if word.isascii()) or "page"


def path_of(template: Template, site: int, number: int) -> str:
    """Return the path of a page, in one of the shapes that sites have."""
    slug = template.slug(site, number)
    match site % 4:
        case 0:
            return f"/{site}/{slug}-{number}.html"
        case 1:
            return f"/{site}/{2010 + number % 9}/{1 + number % 12:02d}/{1 + number % 28:02d}/{slug}-{number}.html"
        case 2:
            return f"/{site}/item/{number}.html"
    return f"/{site}/{slug[:3]}/{slug}/{number}.html"


def write_site(root: Path, site: int, template: Template, copies: int) -> list[str]:
    """Write the pages of a site; return their paths, the front page first."""
    paths = [path_of(template, site, number) for number in range(copies)]
    for number, path in enumerate(paths):
        links = paths[number * _FANOUT + 1 : number * _FANOUT + 1 + _FANOUT]
        file = root / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(template.page(site, number, links), "utf-8")
    return paths


def main() -> int:
    """Print a line per site that is not whole, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path)
    parser.add_argument("--copies", type=int, default=100)
    parser.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    with TemporaryDirectory() as made, TemporaryDirectory() as state, TemporaryDirectory() as folder:
        root = Path(made)
        for each in (made, state):
            Path(each).chmod(0o755)
        sites: dict[int, tuple[str, list[str]]] = {}
        thin = 0
        for number, file in enumerate(sorted(arguments.pages.glob("*.htm*"))):
            if arguments.only and file.stem not in arguments.only:
                continue
            template = Template(file.read_text("utf-8", "replace"))
            if template.texts < _MIN_TEXTS:
                thin += 1
                continue
            sites[number] = file.stem, write_site(root, number, template, arguments.copies)
        print(f"{len(sites)} sites of {arguments.copies} pages; {thin} pages have too few long texts", flush=True)
        addresses = {number: f"127.0.{1 + number // 250}.{1 + number % 250}" for number in sites}
        with Nginx(Path(state), root, addresses=tuple(addresses.values()), core=None) as server:
            seeds = [f"http://{addresses[number]}:{server.port}{paths[0]}" for number, (_, paths) in sites.items()]
            command = [sys.executable, "-m", "gossamer", "crawl", *seeds, "-o", f"{folder}/out", "-n", "1000000"]
            command += ["--politeness-ms", "0", "--json", "--no-progress"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            served = server.served()
    summary = msgspec.json.decode(done.stdout.splitlines()[-1])
    missing = 0
    for name, paths in sites.values():
        left = [path for path in paths if path not in served]
        missing += len(left)
        if left:
            print(f"| {name} | {len(left)} of {len(paths)} missing | {left[0]} |")
    cpu_ms = 1000 * summary["cpu_seconds"] / summary["pages"]
    print(
        f"{summary['pages']} pages, {missing} missing, {summary['held']} held, {summary['near_duplicates']} near "
        f"duplicates, {summary['spam_hosts']} spam hosts, {cpu_ms:.2f} ms of CPU per page, {summary['finished']}"
    )
    return 1 if missing or summary["held"] else 0


if __name__ == "__main__":
    sys.exit(main())
