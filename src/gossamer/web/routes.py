"""The routes of the API: each with the types of what goes in and what comes out.

A route's parameters are a Struct whose fields are the names in braces of its path, and its query. What does not fit is
answered with 400 and one line. The OpenAPI document is made from the same table (`web/openapi`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from gossamer.web.http import HttpRequest

# What is wrong with what somebody sent, in words: a decoder's message names its own types and paths. Pure.

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_UNITS = {"delay": "a number of seconds"}  # fields for which a kind says too little
_AT = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`$")
_EXPECTED = re.compile(r"Expected `([^`]+)`(?: ([<>=]+ \S+|of length .+|matching regex .+))?(?:, got `?([^`]+)`?)?")
_FIELD = re.compile(r"Object (missing required|contains unknown) field `([^`]*)`")
_VALUE = re.compile(r"Invalid (?:enum )?value '?(.*?)'?")


def complaint(error: msgspec.MsgspecError) -> str:
    """Return in one line what is wrong, and what would be right."""
    if not isinstance(error, msgspec.ValidationError):
        return "the body is not valid JSON"
    text = str(error)
    where = ""
    if found := _AT.search(text):
        text = text[: found.start()]
        where = found.group(1)
    words = _in_words(text, where)
    return f"{where}: {words}" if where else words


def _in_words(text: str, where: str) -> str:
    if found := _FIELD.fullmatch(text):
        return f"the field {found.group(2)!r} " + ("is missing" if "missing" in found.group(1) else "is not known")
    if found := _VALUE.fullmatch(text):
        return f"{found.group(1)[:80]!r} is not one of those that are possible; /api/openapi.json lists them"
    if found := _EXPECTED.fullmatch(text):
        kinds, bound, got = found.groups()
        expected = _UNITS.get(where) or " or ".join(_KINDS.get(kind, kind) for kind in kinds.split(" | "))
        if bound:
            expected += f" {bound}" if not bound.startswith("matching") else " of another form: see /api/openapi.json"
        return f"expected {expected}" + (f", not {_KINDS.get(got, got)}" if got else "")
    return text[0].lower() + text[1:]


JSON = "application/json"
MISSING = {404: "there is none"}


class ApiError(Exception):
    """A request that cannot be answered; the status says why."""

    def __init__(self, status: int, text: str, headers: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters."""


class ApiRoute(Struct, frozen=True, kw_only=True):
    """One path and method of the API."""

    path: str  # names in braces are parameters
    summary: str
    handle: Callable[..., Awaitable[Any]]  # of the parameters, and of the body if there is one
    answer: Any  # the type of what is returned; with another media type, a Response
    method: str = "GET"
    parameters: type[Struct] = Nothing
    body: Any = None
    wants_request: bool = False  # it is the last argument of `handle`
    media: str = JSON
    statuses: Mapping[int, str] = {}  # beside 200 and those that every route may have

    @property
    def names(self) -> list[str]:
        """The parameters in its path."""
        return re.findall(r"\{(\w+)\}", self.path)


class Router:
    """Finds the route of a request."""

    def __init__(self, routes: Sequence[ApiRoute]) -> None:
        self._routes = [(re.compile(_pattern(route.path)), route) for route in routes]

    def find(self, request: HttpRequest) -> Awaitable[Any] | None:
        """Return its route's answer, to be awaited; None if no route has its path. Raises `ApiError`."""
        found = [(match, route) for path, route in self._routes if (match := path.fullmatch(request.path))]
        if not found:
            return None
        method = "GET" if request.method == "HEAD" else request.method
        for match, route in found:
            if route.method == method:
                return route.handle(*_arguments(route, match.groupdict(), request))
        allowed = sorted({route.method for _, route in found})
        text = f"{request.method} is not possible here; expected {' or '.join(allowed)}"
        raise ApiError(405, text, [("Allow", ", ".join(allowed))])


def _pattern(path: str) -> str:
    return re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(path))


def _arguments(route: ApiRoute, named: Mapping[str, str], request: HttpRequest) -> list[Any]:
    if route.body is not None and not _is_json(request):  # a form of another site cannot send that
        raise ApiError(415, f"expected Content-Type: {JSON}")
    parameters = _parameters(route, named, request.query)
    body = [] if route.body is None else [_body(route.body, request.body)]
    return [parameters, *body, *([request] if route.wants_request else [])]


def _parameters(route: ApiRoute, named: Mapping[str, str], query: Sequence[tuple[str, str]]) -> Struct:
    given: dict[str, str] = {}
    known = set(route.parameters.__struct_fields__) - set(route.names)
    for name, value in query:
        if name in given:
            raise ApiError(400, f"the parameter {name[:80]!r} is repeated; expected it once")
        if name not in known:
            raise ApiError(400, f"no parameter {name[:80]!r}; {_listed(known)}")
        given[name] = value
    try:
        return msgspec.convert({**given, **named}, route.parameters, strict=False)
    except msgspec.ValidationError as error:
        raise ApiError(400, complaint(error)) from error


def _listed(names: set[str]) -> str:
    return f"there are {', '.join(sorted(names))}" if names else "there are none"


def _is_json(request: HttpRequest) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON


def _body(kind: Any, body: bytes) -> Any:  # noqa: ANN401 - the type of a route's body
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise ApiError(400, complaint(error)) from error
    except RecursionError as error:
        raise ApiError(400, "the body is nested too deeply") from error
