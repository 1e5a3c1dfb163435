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

from gossamer.core.url import path_of
from gossamer.expressions import expression

MAX_NAMES_CHARS = 200
_NUMBER = expression(r"\d+")
_TOKEN = expression(r"(?<![^/])(?=[^/]*\d)[0-9A-Za-z_-]{16,}(?![^/])")
TREE = "/**"


def patterns_of(url: str) -> tuple[str, ...]:
    """Return the patterns that a canonical URL is watched by, the narrowest first; each contains other URLs, too."""
    path, mark, query = path_of(url).partition("?")
    # Both contain digits, which most paths do not: a search is a third of the time of two substitutions.
    shape = path if _NUMBER.search(path) is None else _NUMBER.sub("#", _TOKEN.sub("*", path))
    if mark:
        names = sorted({part.partition("=")[0] for part in query.split("&")})
        return f"{shape}?{'&'.join(names)[:MAX_NAMES_CHARS]}", f"{shape}?*"
    if shape == "/":
        return ("/*",)
    end = len(shape) - 1 if shape.endswith("/") else len(shape)
    folder = shape[: shape.rfind("/", 0, end) + 1]
    in_folder = f"{folder}*" if end == len(shape) else f"{folder}*/"
    first = shape.find("/", 1)
    wide = (in_folder,) if first < 0 or first == len(shape) - 1 else (in_folder, shape[:first] + TREE, TREE)
    return wide if shape in {path, in_folder} else (shape, *wide)


def is_tree(pattern: str) -> bool:
    """Return whether a pattern contains all that lies below a folder."""
    return pattern.endswith(TREE)


def contains(pattern: str, url: str) -> bool:
    """Return whether a URL is of a pattern."""
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
