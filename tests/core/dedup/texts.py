"""Texts with known likeness."""

from __future__ import annotations

from random import Random


def words(count: int, seed: int = 0) -> list[str]:
    draw = Random(seed)
    return ["".join(draw.choices("abcdefghijklmnop", k=draw.randint(2, 9))) for _ in range(count)]


def text(count: int = 400, seed: int = 0) -> str:
    return " ".join(words(count, seed))


def with_changes(source: str, changes: int, seed: int = 1) -> str:
    """Return a text with some words replaced, spread evenly: each costs five shingles."""
    edited = source.split()
    for number in range(changes):
        edited[(2 * number + 1) * len(edited) // (2 * changes)] = f"changed{seed}x{number}"
    return " ".join(edited)
