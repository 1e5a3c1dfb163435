from __future__ import annotations

import pytest

from gossamer.core.frontier.outstanding import Outstanding, OutstandingTask
from gossamer.model.records import FetchKind, FetchTask
from tests.core.slots import NOW, lone_host


def task_out(outstanding: Outstanding) -> OutstandingTask:
    """Let a task go out."""
    host = lone_host("a.test")
    task = FetchTask(
        outstanding.next_id, FetchKind.PAGE, "http://a.test/", b"u" * 16, host.name, ("10.0.0.1",), 0, 0, 0, NOW
    )
    out = OutstandingTask(task, host, None, None)
    outstanding.add(out)
    return out


def test_no_two_tasks_have_one_number() -> None:
    outstanding = Outstanding()
    first = task_out(outstanding)
    outstanding.remove(first.task.id)
    later = [task_out(outstanding) for _ in range(5)]
    assert [out.task.id for out in (first, *later)] == [1, 2, 3, 4, 5, 6]


def test_a_task_is_out_until_it_is_removed() -> None:
    outstanding = Outstanding()
    out = task_out(outstanding)
    assert outstanding.get(out.task.id) is out
    assert outstanding.remove(out.task.id) is out
    assert outstanding.get(out.task.id) is None


def test_a_task_ends_once() -> None:
    outstanding = Outstanding()
    out = task_out(outstanding)
    outstanding.remove(out.task.id)
    with pytest.raises(KeyError):
        outstanding.remove(out.task.id)


def test_tasks_and_look_ups_are_counted_together() -> None:
    outstanding = Outstanding()
    out = task_out(outstanding)
    outstanding.begin_lookup("b.test")
    outstanding.begin_lookup("c.test")
    assert outstanding.count == 3
    outstanding.end_lookup("b.test")
    outstanding.remove(out.task.id)
    assert outstanding.count == 1


def test_a_look_up_that_ends_twice_frees_one_connection() -> None:
    outstanding = Outstanding()
    outstanding.begin_lookup("a.test")
    outstanding.begin_lookup("b.test")
    outstanding.end_lookup("a.test")
    outstanding.end_lookup("a.test")
    assert outstanding.count == 1
