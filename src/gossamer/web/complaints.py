"""What is wrong with what somebody sent, in words: a decoder's message names its own types and paths. Pure."""

from __future__ import annotations

import re

import msgspec

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
    said = _said(text, where)
    return f"{where}: {said}" if where else said


def _said(text: str, where: str) -> str:
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
