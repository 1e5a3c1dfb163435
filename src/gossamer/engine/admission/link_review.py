"""Which links of an answer would hooks be asked about?

Hooks that wait for something (a database, another service) are asked before the answer is completed, since the engine
waits for nothing.
"""

from __future__ import annotations

from gossamer.core.links.intake import Asked, Intake, LinkContext
from gossamer.core.url.forms import link_to
from gossamer.model.records import SITEMAP_INDEX, Link, Order, OrderKind, Outcome, Result, Source


class LinkReview:
    """Finds the links to ask about."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    def asked(self, order: Order, result: Result) -> Asked:
        """Return the links that follow from an answer and that no other rule refuses."""
        if order.kind is OrderKind.ROBOTS or result.content_type == SITEMAP_INDEX:
            return Asked()
        is_redirect = result.outcome is Outcome.REDIRECT
        links: list[Link] = [link_to(result.redirect_to)] if is_redirect else result.links
        source = Source.LINK if order.kind is OrderKind.PAGE else Source.SITEMAP
        context = LinkContext(
            depth=order.depth + (not is_redirect),
            source=Source.REDIRECT if is_redirect else source,
            parent=order.url_id,
            kind=order.kind if is_redirect else OrderKind.PAGE,
            found_on=order.url,
            seed=order.seed,
            anchors=result.anchors or None,
        )
        return self._intake.asked(links, context)
