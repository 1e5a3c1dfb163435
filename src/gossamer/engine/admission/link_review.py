"""Which links of an answer would hooks be asked about?

Hooks that wait for something (a database, another service) are asked before the answer is completed, since the engine
waits for nothing.
"""

from __future__ import annotations

from gossamer.core.links.intake import Intake, LinkContext, LinksForHooks
from gossamer.core.url.forms import link_to
from gossamer.model.records import SITEMAP_INDEX, FetchKind, FetchTask, Link, Outcome, Result, Source


class LinkReview:
    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    def asked(self, task: FetchTask, result: Result) -> LinksForHooks:
        """Return the links that follow from an answer and that no other rule refuses."""
        if task.kind is FetchKind.ROBOTS or result.content_type == SITEMAP_INDEX:
            return LinksForHooks()
        is_redirect = result.outcome is Outcome.REDIRECT
        links: list[Link] = [link_to(result.redirect_to)] if is_redirect else result.links
        source = Source.LINK if task.kind is FetchKind.PAGE else Source.SITEMAP
        context = LinkContext(
            depth=task.depth + (not is_redirect),
            source=Source.REDIRECT if is_redirect else source,
            parent=task.url_id,
            kind=task.kind if is_redirect else FetchKind.PAGE,
            found_on=task.url,
            seed=task.seed,
            anchors=result.anchors or None,
        )
        return self._intake.asked(links, context)
