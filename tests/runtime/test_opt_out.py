"""`blocked.txt`: read when it changes, and submitted as a command."""

from __future__ import annotations

from pathlib import Path

from gossamer.model.commands import Command, SetOptOuts
from gossamer.runtime.session.opt_out import OptOutFile, OptOutWatch, name_in

TEXT = "# who wrote to us\nA.test   # since May\nhttps://b.test/page\n*.c.test\n\n:::\n"


def test_the_file_is_read_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "blocked.txt"
    names = OptOutFile(path, ["Fixed.test"])
    assert names.changed() == frozenset({"fixed.test"})
    assert names.changed() is None
    path.write_text(TEXT, "utf-8")
    assert names.changed() == frozenset({"fixed.test", "a.test", "b.test", "c.test"})
    assert names.changed() is None
    path.unlink()
    assert names.changed() == frozenset({"fixed.test"})


def test_names_are_submitted_at_the_first_look_and_then_only_if_they_change(tmp_path: Path) -> None:
    path = tmp_path / "blocked.txt"
    submitted: list[Command] = []
    watch = OptOutWatch(OptOutFile(path), submitted.append)
    watch.check()
    watch.check()
    path.write_text("a.test\n", "utf-8")
    watch.check()
    watch.check()
    assert submitted == [SetOptOuts(frozenset()), SetOptOuts(frozenset({"a.test"}))]


def test_a_name_is_brought_to_its_canonical_form() -> None:
    assert name_in("  BÜCHER.example # x") == "xn--bcher-kva.example"
    assert name_in("# nothing") == ""
