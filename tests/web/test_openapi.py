"""The OpenAPI document says what the API does: every route is asked what it describes, and what it does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.reading.folders import Crawled, finished, small_web
from tests.web.serving import Reply, Served, served

__all__ = ["finished", "small_web"]

HOSTILE = (
    *(
        "",
        " ",
        "0",
        "-1",
        "1e309",
        "NaN",
        "9" * 40,
        "true",
        "null",
        "[]",
        "{}",
        "../../etc/passwd",
        "%00",
        "%0d%0aX: y",
    ),
    *("%ff%fe", "%ed%a0%80", "<script>alert(1)</script>", "' OR 1=1 --", "${jndi:x}", "a" * 2500, "😀" * 50, "\u202e"),
)


@pytest.fixture(scope="module")
def server(finished: Crawled) -> Iterator[Served]:
    with served(finished.path) as server:
        yield server


@pytest.fixture(scope="module")
def document(server: Served) -> dict[str, Any]:
    answer: dict[str, Any] = server.ask("/api/openapi.json").json
    return answer


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


class Checker:
    """Checks values against the schemas of a document: as much of JSON Schema as msgspec writes."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def faults(self, value: Any, schema: dict[str, Any], where: str = "$") -> Iterator[str]:
        if "$ref" in schema:
            schema = self._document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        if "anyOf" in schema:
            if all(list(self.faults(value, each, where)) for each in schema["anyOf"]):
                yield f"{where}: {value!r} is none of several"
            return
        if "enum" in schema and value not in schema["enum"]:
            yield f"{where}: {value!r} is not one of {schema['enum']}"
        kind = schema.get("type")
        if kind is not None and not _is_a(value, kind):
            yield f"{where}: {value!r} is not a {kind}"
            return
        if isinstance(value, dict):
            yield from self._of_object(value, schema, where)
        if isinstance(value, list) and isinstance(schema.get("items"), dict):
            for number, each in enumerate(value):
                yield from self.faults(each, schema["items"], f"{where}[{number}]")

    def _of_object(self, value: dict[str, Any], schema: dict[str, Any], where: str) -> Iterator[str]:
        properties = schema.get("properties", {})
        yield from (f"{where}.{name} is missing" for name in schema.get("required", ()) if name not in value)
        for name, each in value.items():
            if name in properties:
                yield from self.faults(each, properties[name], f"{where}.{name}")
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from self.faults(each, schema["additionalProperties"], f"{where}.{name}")
            elif properties:
                yield f"{where}.{name} is not described"


def _is_a(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "null": type(None),
        "boolean": bool,
    }
    return isinstance(value, kinds[kind])


def check(reply: Reply, operation: dict[str, Any], document: dict[str, Any], asked: str) -> None:
    """Fail unless an answer is one that the document describes."""
    described = operation["responses"].get(str(reply.status))
    assert described is not None, f"{asked}: status {reply.status} is not described"
    kind = reply.headers["content-type"].partition(";")[0]
    assert kind in described["content"] or "*/*" in described["content"], f"{asked}: {kind}"
    if kind == "application/json":
        schema = described["content"]["application/json"]["schema"]
        assert list(Checker(document).faults(reply.json, schema)) == [], asked
    if reply.status >= 400:
        assert "\n" not in reply.json["error"]
        assert "Traceback" not in reply.json["error"]


def addresses(path: str, operation: dict[str, Any], value: str) -> Iterator[str]:
    """Yield addresses of a route with a value in each of its parameters, one at a time."""
    inside = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
    query = [each for each in operation["parameters"] if each["in"] == "query"]
    required = "&".join(f"{each['name']}=x" for each in query if each["required"])
    given = value if value.startswith("%") else quote(value, safe="")
    filled = path
    for name in inside:
        filled = filled.replace(f"{{{name}}}", "x")
        yield path.replace(f"{{{name}}}", given) + (f"?{required}" if required else "")
    for each in query:
        others = "&".join(f"{one['name']}=x" for one in query if one["required"] and one is not each)
        yield f"{filled}?{each['name']}={given}&{others}".rstrip("&")
    yield f"{filled}?unknown={given}"


def test_every_view_of_the_page_is_described(document: dict[str, Any]) -> None:
    paths = {path for _, path, _ in operations(document)}
    needed = {"status", "hosts", "hosts/{name}", "why", "pages", "duplicates", "traps", "dead", "settings", "events"}
    assert {f"/api/{name}" for name in (*needed, "control", "openapi.json")} <= paths
    assert document["openapi"].startswith("3.1")


def test_answers_are_as_described(server: Served, document: dict[str, Any]) -> None:
    host = server.ask("/api/hosts?limit=1").json["hosts"][0]["name"]
    page = server.ask("/api/pages?limit=1").json["pages"][0]
    fitting = {"name": host, "id": page["id"], "url": quote(page["url"], safe="")}
    for method, path, operation in operations(document):
        if method != "GET" or path == "/api/events":
            continue
        filled = path
        for name, value in fitting.items():
            filled = filled.replace(f"{{{name}}}", value)
        needed = [each["name"] for each in operation["parameters"] if each["in"] == "query" and each["required"]]
        filled += "?" + "&".join(f"{name}={fitting[name]}" for name in needed) if needed else ""
        reply = server.ask(filled)
        assert reply.status == 200, filled
        check(reply, operation, document, filled)


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: ascii(value)[:20])
def test_hostile_parameters_get_described_answers(server: Served, document: dict[str, Any], value: str) -> None:
    for method, path, operation in operations(document):
        if method != "GET":
            continue
        for address in addresses(path, operation, value):
            if path == "/api/events" and "unknown" not in address:
                continue  # an answer without an end: see test_api
            reply = server.ask(address)
            if path.count("{") and reply.status == 404 and "nothing at this address" in reply.json["error"]:
                continue  # a slash or nothing in a path is another path
            check(reply, operation, document, address)
            if "unknown" in address:
                assert reply.status == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "POST", "BREW"])
def test_other_methods_are_refused_and_the_right_ones_are_named(
    server: Served, document: dict[str, Any], method: str
) -> None:
    for path, methods in document["paths"].items():
        if method.lower() in methods:
            continue
        reply = server.ask(path, method=method, headers={"Content-Type": "application/json"})
        assert reply.status == 405, path
        assert reply.headers["allow"] == ", ".join(name.upper() for name in methods)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"null", b"[]", b'""', b"1", b"{}", b'{"command": 1}', b'{"command": "block", "names": "x"}'),
        *(b'{"command": "pace", "pattern": "*", "delay": "fast"}', b'{"command": "set", "key": [], "value": 1}'),
        *(b"\xff\xfe", b'{"command": "add", "seeds": [1]}', b'{"command": "pause", "by": "x"}', b"9" * 5000),
    ],
)
def test_hostile_bodies_get_described_answers(server: Served, document: dict[str, Any], body: bytes) -> None:
    operation = document["paths"]["/api/control"]["post"]
    reply = server.ask("/api/control", method="POST", body=body, headers={"Content-Type": "application/json"})
    assert reply.status == 400
    check(reply, operation, document, repr(body[:40]))


def test_every_command_is_described(document: dict[str, Any]) -> None:
    schema = document["paths"]["/api/control"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    names = [each["$ref"].rpartition("/")[2] for each in schema["anyOf"]]
    tags = {document["components"]["schemas"][name]["properties"]["command"]["enum"][0] for name in names}
    verbs = {"pause", "resume", "stop", "block", "unblock", "pace", "set", "add", "changed", "release", "retry"}
    assert tags == verbs
    assert "by" not in json.dumps([document["components"]["schemas"][name]["properties"] for name in names])


def test_events_are_described_as_they_are_sent(server: Served) -> None:
    responses = server.ask("/api/openapi.json").json["paths"]["/api/events"]["get"]["responses"]
    schema = responses["200"]["content"]["text/event-stream"]["schema"]
    assert (schema["type"], schema["required"]) == ("object", ["event", "data"])
