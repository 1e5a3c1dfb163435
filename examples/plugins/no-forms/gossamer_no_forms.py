"""A filter that leaves out links whose text says that they lead to a form."""

from __future__ import annotations

from gossamer.plugins import FoundLink

FORMS = frozenset({"log in", "sign in", "sign up", "register", "subscribe", "contact us"})


class NoForms:
    """See `gossamer.plugins.LinkFilter`."""

    def accept(self, link: FoundLink) -> bool:
        """Return whether the text of a link names no form."""
        return link.text.strip().lower() not in FORMS
