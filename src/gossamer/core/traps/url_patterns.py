"""Which URLs are of one kind? Patterns of a host's URLs, from narrow to wide.

| pattern         | contains                                                                               |
|-----------------|----------------------------------------------------------------------------------------|
| `/item/#`       | paths that differ in numbers (`#`) and machine-made names (`*`) only                     |
| `/item/#?a&b`   | the same with these parameters, whatever their values                                  |
| `/item/#?*`     | the same with any parameters                                                           |
| `/word/*`       | whatever lies in a folder, and not below its folders                                   |
| `/tree/**`      | whatever lies below a folder                                                           |
"""

from __future__ import annotations

from functools import lru_cache

from gossamer.core.url.forms import path_of
from gossamer.foundation.expressions import expression
from gossamer.foundation.kernel import kernel

MAX_NAMES_CHARS = 200
_NUMBER = expression(r"\d+")
_TOKEN = expression(r"(?<![^/])(?=[^/]*\d)[0-9A-Za-z_-]{16,}(?![^/])")
TREE = "/**"


def patterns_of(url: str) -> tuple[str, ...]:
    """Return the patterns that a canonical URL is watched by, the narrowest first; each contains other URLs, too."""
    found = kernel.path_patterns(url) if kernel is not None else None
    return plain_patterns_of(url) if found is None else found


def plain_patterns_of(url: str) -> tuple[str, ...]:
    """Return the patterns of a URL, in pure Python: with a kernel, of one with a query only."""
    path = path_of(url)
    has_query = "?" in path
    # Names of machines contain digits, too, which most paths do not.
    if not has_query and _NUMBER.search(path) is None:
        return _patterns_in(path[: path.rfind("/", 0, len(path) - 1) + 1], path[-1] == "/")
    path, _, query = path.partition("?")
    shape = _NUMBER.sub("#", _TOKEN.sub("*", path))
    if has_query:
        names = sorted({part.partition("=")[0] for part in query.split("&")})
        return f"{shape}?{'&'.join(names)[:MAX_NAMES_CHARS]}", f"{shape}?*"
    wide = _patterns_in(shape[: shape.rfind("/", 0, len(shape) - 1) + 1], shape[-1] == "/")
    return wide if shape in {path, wide[0]} else (shape, *wide)


@lru_cache(maxsize=512)
def _patterns_in(folder: str, is_folder: bool) -> tuple[str, ...]:
    """Return the patterns of whatever lies in a folder: pages, or folders. Half of the time of a pattern if known."""
    if not folder:
        return ("/*",)  # the first page
    in_folder = f"{folder}*/" if is_folder else f"{folder}*"
    return (in_folder,) if folder == "/" else (in_folder, folder[: folder.index("/", 1)] + TREE, TREE)


def is_tree(pattern: str) -> bool:
    """Return whether a pattern contains all that lies below a folder."""
    return pattern.endswith(TREE)


def contains(pattern: str, url: str) -> bool:
    if is_tree(pattern):
        return path_of(url).startswith(pattern[:-2])
    return pattern in patterns_of(url)


def folder_of(url: str) -> str:
    """Return the folder that a URL lies in; a path that ends in a slash is taken for a page, not for its own folder."""
    path = path_of(url).partition("?")[0]
    return path[: path.rfind("/", 0, len(path) - 1) + 1] or "/"


def common_folder(one: str, other: str) -> str:
    """Return the deepest folder that contains two folders."""
    if other.startswith(one):
        return one
    length = next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), len(other))
    return one[: one.rfind("/", 0, min(length, len(one))) + 1]
