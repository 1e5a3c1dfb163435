"""Which of our errors is an error of a client library? A table per port says so; it is applied here alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType

from msgspec import Struct

from gossamer.foundation.expressions import expression
from gossamer.model.errors import LedgerUnavailableError, StoreUnavailableError, UsageError


class Said(Struct, frozen=True):
    """What a client library says of an error, in one line."""

    text: str
    causes: Sequence[BaseException]
    code: object = None
    values: Mapping[str, object] = {}


class Rule(Struct, frozen=True):
    """Which errors are raised as one of ours. Its message is a format of `text`, what the port adds, and groups."""

    ours: type[Exception]
    message: str
    kinds: tuple[type[BaseException], ...] = (BaseException,)  # of any cause
    codes: Collection[object] = ()  # none: whatever the code is
    pattern: re.Pattern[str] = expression("")  # that is found in the text


def one_line(error: BaseException) -> Said:
    """Return what most libraries say."""
    return Said(" ".join(str(error).split()).rstrip("."), (error,))


class DriverErrors:
    """Raises errors of a client library as ours: `with errors: …`. Several threads may be within it.

    The first rule that fits counts. If `read` returns None, the error is raised as it is.
    """

    def __init__(
        self,
        kinds: tuple[type[BaseException], ...],
        rules: Sequence[Rule],
        read: Callable[[BaseException], Said | None] = one_line,
        **values: str,
    ) -> None:
        self._kinds = kinds
        self._rules = rules
        self._read = read
        self._values = values

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, self._kinds) and (ours := self.as_ours(error)) is not None:
            raise ours from error

    def as_ours(self, error: BaseException) -> Exception | None:
        """Return an error as ours."""
        said = self._read(error)
        if said is None:
            return None
        for rule in self._rules:
            found = rule.pattern.search(said.text)
            is_kind = any(isinstance(cause, rule.kinds) for cause in said.causes)
            if found is not None and is_kind and (not rule.codes or said.code in rule.codes):
                return rule.ours(
                    rule.message.format(text=said.text, **self._values, **said.values, **found.groupdict())
                )
        return None


def _as_it_is(error: BaseException) -> Said:
    return Said(str(error), (error,))


# A catalog's server may be that of a ledger. Before a crawl begins, what is wrong is the operator's; while it runs, it
# waits: also if rights were taken away meanwhile.
AT_THE_START = DriverErrors((LedgerUnavailableError,), [Rule(UsageError, "{text}")], _as_it_is)
WHILE_IT_RUNS = DriverErrors((LedgerUnavailableError, UsageError), [Rule(StoreUnavailableError, "{text}")], _as_it_is)
