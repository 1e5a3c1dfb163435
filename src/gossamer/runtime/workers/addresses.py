"""Which addresses may be connected to for a host name?

Joins the resolver with the address policy: an answer is either a list of usable addresses,
or the outcome and the reason why there is none. Names behind a proxy may be left to it (`fetch/names/proxied_names`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from msgspec import Struct

from gossamer.fetch.access import UNRESOLVED, AccessTable
from gossamer.fetch.names.dns import Resolution, Resolver
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.names.proxied_names import unasked, unless_failed
from gossamer.model.records import Outcome


class AddressAnswer(Struct, frozen=True):
    """The result of a look-up. If there are no addresses, `outcome` and `error` say why."""

    addresses: tuple[str, ...] = ()
    expires_at: float = 0.0
    outcome: Outcome = Outcome.OK
    error: str = ""


OnAnswer = Callable[[str, AddressAnswer], None]


class AddressSource(Protocol):
    """Looks up host names."""

    def find(self, host: str, on_answer: OnAnswer) -> None:
        """Call `on_answer` once with the host and its answer: immediately if cached, otherwise later from the loop."""
        ...


class AddressFinder:
    """Looks up names in the DNS and refuses addresses that the policy forbids."""

    def __init__(
        self,
        resolver: Resolver,
        policy: AddressPolicy,
        access: AccessTable | None = None,
        now: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._resolver = resolver
        self._policy = policy
        self._access = access  # None: no host has a proxy
        self._now = now

    def find(self, host: str, on_answer: OnAnswer) -> None:
        known = self._resolver.cached(host)
        if known is None and self._access is not None:
            known = unasked(self._access, host, self._now())
        if known is not None:
            self._check(host, on_answer, known)
        else:
            self._resolver.resolve_soon(host, partial(self._check, host, on_answer))

    def _check(self, host: str, on_answer: OnAnswer, resolution: Resolution) -> None:
        if self._access is not None:
            resolution = unless_failed(self._access, host, resolution, self._now())
        if resolution.addresses == (UNRESOLVED,):
            on_answer(host, AddressAnswer(resolution.addresses, resolution.expires_at))
            return
        if not resolution.addresses:
            on_answer(host, AddressAnswer(outcome=resolution.outcome, error=resolution.error))
            return
        refusals = {address: self._policy.refusal(address) for address in resolution.addresses}
        usable = tuple(address for address, refusal in refusals.items() if refusal is None)
        if usable:
            on_answer(host, AddressAnswer(usable, resolution.expires_at))
        else:
            reason = "; ".join(f"{address}: {refusal}" for address, refusal in refusals.items())
            on_answer(host, AddressAnswer(outcome=Outcome.BLOCKED_ADDRESS, error=reason))
