"""What is wrong with a request is said in words, not in a decoder's."""

from __future__ import annotations

import msgspec
import pytest

from gossamer.model.commands import OperatorCommand
from gossamer.web.hosts import HostsQuery
from gossamer.web.routes import complaint


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"command": "pace", "pattern": "*", "delay": "x"}', "delay: expected a number of seconds, not a text"),
        (b'{"command": "pace", "pattern": 5}', "pattern: expected a text, not a whole number"),
        (b'{"command": "add", "seeds": "x"}', "seeds: expected a list, not a text"),
        (b'{"command": "add", "seeds": [1]}', "seeds[0]: expected a text, not a whole number"),
        (b'{"command": "block"}', "the field 'names' is missing"),
        (b'{"command": "pause", "more": 1}', "the field 'more' is not known"),
        (b'{"command": "explode"}', "command: 'explode' is not one of those that are possible"),
        (b"[]", "expected an object, not a list"),
        (b"null", "expected an object, not null"),
        (b"{", "the body is not valid JSON"),
        (b"", "the body is not valid JSON"),
    ],
)
def test_a_wrong_command_is_named_in_words(body: bytes, said: str) -> None:
    with pytest.raises(msgspec.MsgspecError) as raised:
        msgspec.json.decode(body, type=OperatorCommand)
    assert complaint(raised.value).partition(";")[0] == said


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("limit", "0", "limit: expected a whole number >= 1"),
        ("limit", "x", "limit: expected a whole number, not a text"),
        ("q", "a" * 301, "q: expected a text of length <= 300"),
        ("sort", "size", "sort: 'size' is not one of those that are possible"),
        ("cursor", "-", "cursor: expected a text of another form: see /api/openapi.json"),
    ],
)
def test_a_wrong_parameter_is_named_in_words(name: str, value: str, said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert({name: value}, HostsQuery, strict=False)
    assert complaint(raised.value).partition(";")[0] == said
