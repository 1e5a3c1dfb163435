"""Maps a status to an outcome: two tables, policy is data. Server behaviour is a value, never an exception."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gossamer.model.records import Outcome

# The few statuses that do not follow their class. 300, 304, 305 and 306 are answers that were not requested.
_BY_STATUS: Final[Mapping[int, Outcome]] = {
    200: Outcome.OK,
    301: Outcome.REDIRECT,
    302: Outcome.REDIRECT,
    303: Outcome.REDIRECT,
    307: Outcome.REDIRECT,
    308: Outcome.REDIRECT,
    429: Outcome.RATE_LIMITED,
}
_BY_CLASS: Final[Mapping[int, Outcome]] = {
    1: Outcome.PROTOCOL_ERROR,  # 101 to a plain GET: what follows is another protocol
    2: Outcome.OTHER_SUCCESS,
    4: Outcome.CLIENT_ERROR,
    5: Outcome.SERVER_ERROR,
}


def status_outcome(status: int, *, has_location: bool, is_conditional: bool) -> Outcome:
    if status == 304:
        return Outcome.NOT_MODIFIED if is_conditional else Outcome.BAD_STATUS
    outcome = _BY_STATUS.get(status) or _BY_CLASS.get(status // 100, Outcome.BAD_STATUS)
    if outcome is Outcome.REDIRECT and not has_location:
        return Outcome.BAD_REDIRECT
    return outcome
