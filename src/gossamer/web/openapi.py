"""The OpenAPI document, made from the routes: so the two cannot disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from gossamer import __version__
from gossamer.web.http import BadRequest
from gossamer.web.routes import JSON, ApiRoute

_ERRORS = {
    400: "the request is not valid",
    401: "no token, or a wrong one",
    403: "another Host or Origin than this server's",
    431: "the head of the request is too large",
    503: "the crawl cannot be read now",
}
_NOT_JSON = {
    "text/event-stream": {  # of each event
        "type": "object",
        "properties": {"event": {"type": "string"}, "data": {"type": "string", "contentMediaType": JSON}},
        "required": ["event", "data"],
    }
}
_REFERENCE = "#/components/schemas/{name}"


def document(routes: Sequence[ApiRoute]) -> dict[str, Any]:
    kinds = [kind for route in routes for kind in (route.answer, route.body, route.parameters) if kind is not None]
    schemas, components = msgspec.json.schema_components([*kinds, BadRequest], ref_template=_REFERENCE)
    by_kind = {id(kind): schema for kind, schema in zip([*kinds, BadRequest], schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind, components)
    shown = {name: schema for name, schema in components.items() if name not in _parameter_names(routes)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Gossamer", "version": __version__, "description": "A crawl: what it does, and what to do."},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": shown,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _parameter_names(routes: Sequence[ApiRoute]) -> set[str]:
    return {route.parameters.__name__ for route in routes}


def _operation(route: ApiRoute, by_kind: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    shape = components[route.parameters.__name__]
    required = set(shape.get("required", ()))
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": "_".join([route.method.lower(), *_words(route.path)]),
        "parameters": [
            {
                "name": name,
                "in": "path" if name in route.names else "query",
                "required": name in route.names or name in required,
                "schema": _bare(schema),
                **({"description": schema["description"]} if "description" in schema else {}),
            }
            for name, schema in shape.get("properties", {}).items()
        ],
        "responses": _responses(route, by_kind),
    }
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": by_kind[id(route.body)]}}}
    return operation


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "description"}


def _words(path: str) -> list[str]:
    return [word.strip("{}").replace(".", "_") for word in path.split("/") if word]


def _responses(route: ApiRoute, by_kind: dict[int, Any]) -> dict[str, Any]:
    answer = by_kind[id(route.answer)] if route.media == JSON else _NOT_JSON.get(route.media, {"type": "string"})
    responses: dict[str, Any] = {"200": {"description": route.summary, "content": {route.media: {"schema": answer}}}}
    posts = {413: "the body is too large", 415: "not JSON"} if route.method == "POST" else {}
    for status, text in sorted({**_ERRORS, **posts, **route.statuses}.items()):
        responses[str(status)] = {"description": text, "content": {JSON: {"schema": by_kind[id(BadRequest)]}}}
    return responses
