"""What is damage of the ledger, and what is a fault of ours? Only the latter may show a traceback."""

from __future__ import annotations

import errno

import lmdb
import msgspec
import pytest

from gossamer.model.errors import as_our_error, damage_of

PAGE = lmdb.PageNotFoundError("mdb_get")
ROW = msgspec.DecodeError("Input data was truncated")
OURS = RuntimeError("a fault")


@pytest.mark.parametrize("error", [PAGE, ROW, ExceptionGroup("tasks", [PAGE]), ExceptionGroup("tasks", [ROW, PAGE])])
def test_damage_is_told_as_such_also_if_tasks_met_it(error: Exception) -> None:
    damage = damage_of(error)
    assert damage is not None
    assert "the ledger is damaged" in str(damage)
    assert "--mend" in str(damage)


@pytest.mark.parametrize("error", [OURS, ValueError("ours"), ExceptionGroup("tasks", [PAGE, OURS])])
def test_a_fault_of_ours_is_no_damage(error: Exception) -> None:
    assert damage_of(error) is None


def test_a_refused_permission_is_called_that() -> None:
    error = as_our_error(PermissionError(errno.EACCES, "Permission denied", "/crawls/of-another"))
    assert str(error) == "/crawls/of-another: permission denied: this user may not read or change it"
