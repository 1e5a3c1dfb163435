from __future__ import annotations

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import QueueOrder, ordering
from gossamer.core.links.first_pass import FirstPass
from gossamer.core.links.intake import URL_CHARS, FoundLink, Intake, IntakeRules, LinkContext, LinkHooks
from gossamer.core.links.scope import DEFAULT_EXCLUDES, Reach, Scope, Surroundings
from gossamer.core.url.forms import link_to
from gossamer.model.records import Anchor, FetchKind, Link, Source

LIMITS = FrontierLimits(max_depth=3)
PAGE = LinkContext(depth=1, source=Source.LINK, parent=b"p" * 16)
MONTH = LinkContext(depth=1, source=Source.LINK, found_on="http://h.test/2000/01/")


def _intake(max_links: int = 100, first_pass: FirstPass | None = None, *, remembers: bool = True) -> Intake:
    scope = Scope(Reach.HOST)
    scope.join("http://h.test/", "h.test")
    return Intake(
        scope,
        ordering(QueueOrder.BREADTH),
        LIMITS,
        IntakeRules(max_links_per_page=max_links, remembers=remembers),
        first_pass=first_pass,
    )


def _links(*paths: str) -> list[Link]:
    return [link_to(path if "://" in path else "http://h.test" + path) for path in paths]


def test_candidates_keep_their_order_and_know_where_they_come_from() -> None:
    screened = _intake().screen(_links("/b", "/a", "/c.pdf"), PAGE, 7.0)
    assert [url.url for url in screened.candidates] == ["http://h.test/b", "http://h.test/a", "http://h.test/c.pdf"]
    assert [url.seq for url in screened.candidates] == [1, 2, 3]
    first = screened.candidates[0]
    assert (first.depth, first.source, first.parent, first.found_at, first.priority) == (
        1,
        Source.LINK,
        b"p" * 16,
        7.0,
        1,
    )


def test_each_refusal_is_named_and_reported_once() -> None:
    intake = _intake()
    links = _links("http://other.test/", "/x.zip", "/login", "/ok")
    screened = intake.screen(links, PAGE, 0.0)
    assert [refused.rule for refused in screened.refused] == [
        "out_of_scope",
        "extension",
        "exclude_pattern",
    ]
    assert [refused.detail for refused in screened.refused] == ["", ".zip", DEFAULT_EXCLUDES[0]]
    assert [url.url for url in screened.candidates] == ["http://h.test/ok"]
    again = intake.screen(links, PAGE, 0.0)
    assert (again.candidates, again.refused) == ([], [])


def test_a_path_that_repeats_itself_is_refused_on_a_page_like_it_and_nowhere_else() -> None:
    intake = _intake()
    links = _links("/a/a/a/a/")
    like_it = LinkContext(depth=1, source=Source.LINK, found_on="http://h.test/a/a/a/")
    for _ in range(2):
        screened = intake.screen(links, like_it, 0.0)
        assert [refused.rule for refused in screened.refused] == ["repeated_segment"]
        assert not screened.is_final, "another page may name it"
    assert len(intake.screen(links, PAGE, 0.0).candidates) == 1


def test_too_deep_is_not_remembered() -> None:
    intake = _intake()
    deepest = LinkContext(depth=3, source=Source.LINK)
    deep = LinkContext(depth=4, source=Source.LINK)
    assert intake.screen(_links("/a", "/b"), deep, 0.0).candidates == []
    assert [url.depth for url in intake.screen(_links("/b"), deepest, 0.0).candidates] == [3]
    assert len(intake.screen(_links("/a"), PAGE, 0.0).candidates) == 1


def test_links_to_a_host_with_over_size_answers_are_refused_beyond_depth_2_and_not_remembered() -> None:
    intake = _intake()
    intake.heavy_hosts.add("h.test")
    screened = intake.screen(_links("/a", "/b"), LinkContext(depth=3, source=Source.LINK), 0.0)
    assert [refused.rule for refused in screened.refused] == ["oversize_host"] * 2
    assert not screened.is_final
    assert len(intake.screen(_links("/a", "/b"), LinkContext(depth=2, source=Source.LINK), 0.0).candidates) == 2


def test_what_is_over_the_cap_of_one_page_may_come_with_the_next() -> None:
    intake = _intake(max_links=2)
    links = _links("/1", "/2", "/3", "/4", "/5")
    screened = intake.screen(links, PAGE, 0.0)
    assert (len(screened.candidates), screened.capped) == (2, 3)
    screened = intake.screen(links, PAGE, 0.0)
    assert [url.url[-1] for url in screened.candidates] == ["3", "4"]


def test_one_page_brings_fewer_links_if_their_urls_are_very_long() -> None:
    links = _links(*(f"/{n}{'x' * 2000}" for n in range(20)))
    screened = _intake(max_links=16).screen(links, PAGE, 0.0)
    assert (len(screened.candidates), screened.capped) == (4, 16)
    assert sum(len(url.url) for url in screened.candidates[:-1]) < 16 * URL_CHARS
    assert not screened.is_final


def test_a_sitemap_may_bring_more_than_a_page() -> None:
    sitemap = LinkContext(depth=1, source=Source.SITEMAP)
    assert len(_intake(max_links=2).screen(_links("/1", "/2", "/3"), sitemap, 0.0).candidates) == 3


def test_seeds_pass_whatever_the_rules() -> None:
    seed = LinkContext(depth=0, source=Source.SEED, https_first=True)
    screened = _intake().screen(_links("http://other.test/login"), seed, 0.0)
    assert [url.https_first for url in screened.candidates] == [True]
    sitemap = LinkContext(depth=0, source=Source.SITEMAP, kind=FetchKind.SITEMAP)
    assert _intake().screen(_links("/sitemap.xml.gz"), sitemap, 0.0).candidates[0].kind is FetchKind.SITEMAP


def test_a_sitemap_does_not_wait_for_the_pages_as_a_document_does() -> None:
    intake = _intake()
    sitemap = LinkContext(depth=0, source=Source.SITEMAP, kind=FetchKind.SITEMAP)
    (listed,) = intake.screen(_links("/sitemap.xml"), sitemap, 0.0).candidates
    page, feed = intake.screen(_links("/a", "/feed.xml"), PAGE, 0.0).candidates
    assert listed.priority < page.priority < feed.priority


def test_the_calendar_budget_counts_what_was_admitted() -> None:
    intake = _intake()
    links = _links(*(f"/cal/{year}/{month:02}" for year in range(2000, 2010) for month in range(1, 13)))
    screened = intake.screen(links, MONTH, 0.0)
    assert (len(screened.candidates), len(screened.held), screened.refused) == (40, 80, [])
    assert {held.rule for held in screened.held} == {"calendar"}
    intake.withdraw_dated(screened, screened.candidates[10:])
    assert len(intake.screen(links[40:], MONTH, 0.0).candidates) == 10, "ten were known already"
    assert len(intake.screen(links[50:], PAGE, 0.0).candidates) == 70, "what another page names does not count"


def test_the_first_pass_admits_one_url_per_domain_but_every_redirect() -> None:
    scope_any = Intake(
        Scope(Reach.ANY),
        ordering(QueueOrder.BREADTH),
        LIMITS,
        IntakeRules(),
        first_pass=FirstPass(5),
    )
    links = _links("http://a.test/1", "http://b.test/1")
    screened = scope_any.screen(links, PAGE, 0.0)
    scope_any.record_admitted(screened.candidates)
    assert len(screened.candidates) == 2
    more = _links("http://a.test/2", "http://www.a.test/3", "http://c.test/")
    screened = scope_any.screen(more, PAGE, 0.0)
    assert [url.host for url in screened.candidates] == ["c.test"]
    assert screened.refused == [], "kept in reserve is not refused"
    redirect = LinkContext(depth=1, source=Source.REDIRECT)
    assert len(scope_any.screen(_links("http://a.test/2"), redirect, 0.0).candidates) == 1


def test_one_page_brings_one_url_of_a_new_domain() -> None:
    intake = Intake(Scope(Reach.ANY), ordering(QueueOrder.BREADTH), LIMITS, IntakeRules(), first_pass=FirstPass(5))
    screened = intake.screen(_links("http://a.test/1", "http://a.test/2", "http://b.test/"), PAGE, 0.0)
    assert [url.url for url in screened.candidates] == ["http://a.test/1", "http://b.test/"]


def test_without_a_memory_nothing_is_remembered() -> None:
    intake = _intake(remembers=False)
    assert len(intake.screen(_links("/a"), PAGE, 0.0).candidates) == 1
    assert len(intake.screen(_links("/a"), PAGE, 0.0).candidates) == 1


def test_a_seed_of_its_own_scope_is_followed_within_that_scope() -> None:
    intake = _intake()
    intake.seed_scopes[1] = Surroundings(Reach.PREFIX, "scope=prefix of the seed http://x.test/a/")
    intake.seed_scopes[1].join("http://x.test/a/", "x.test")
    ours, theirs = _links("http://x.test/a/b", "http://x.test/c.zip", "http://x.test/c"), _links("/ok")
    seeded = LinkContext(depth=1, source=Source.LINK, seed=1)
    screened = intake.screen([*ours, *theirs], seeded, 0.0)
    assert [(url.url, url.seed) for url in screened.candidates] == [("http://x.test/a/b", 1)]
    assert {refused.rule for refused in screened.refused} == {"out_of_scope"}
    assert screened.refused[-1].detail == "scope=prefix of the seed http://x.test/a/"
    again = intake.screen([*ours, *theirs], seeded, 0.0)
    assert (again.candidates, again.refused) == ([], []), "decided for this seed"


def test_what_one_seed_refuses_another_may_accept() -> None:
    for first, second in ((0, 1), (1, 0), (2, 1)):
        intake = _intake()
        for number in (1, 2):
            intake.seed_scopes[number] = Surroundings(Reach.HOST)
            intake.seed_scopes[number].join(f"http://{number}.test/", f"{number}.test")
        links = _links("/", "http://1.test/x", "http://2.test/x")
        refused = 0
        for seed in (first, second):
            screened = intake.screen(links, LinkContext(depth=1, source=Source.LINK, seed=seed), 0.0)
            assert [url.host for url in screened.candidates] == [f"{seed}.test" if seed else "h.test"]
            refused += len(screened.refused)
        assert refused == 4


def test_a_seed_has_a_depth_of_its_own() -> None:
    intake = _intake()
    LIMITS.seed_depths.update({1: 1, 2: 9})
    try:
        for seed, depth, count in ((0, 3, 1), (0, 4, 0), (1, 1, 1), (1, 2, 0), (2, 9, 1), (2, 10, 0), (3, 4, 0)):
            context = LinkContext(depth=depth, source=Source.LINK, seed=seed)
            assert len(intake.screen(_links(f"/{seed}/{depth}"), context, 0.0).candidates) == count
    finally:
        LIMITS.seed_depths.clear()


def test_the_memos_of_all_seeds_are_bounded_together() -> None:
    intake = Intake(Scope(Reach.ANY), ordering(QueueOrder.BREADTH), LIMITS, IntakeRules(memo_urls=10))
    links = _links(*(f"/{number}" for number in range(4)))
    reported = []
    for seed in (1, 1, 2, 3, 1):
        intake.seed_scopes[seed] = Surroundings(Reach.HOST)
        reported.append(len(intake.screen(links, LinkContext(1, Source.LINK, seed=seed), 0.0).refused))
    assert reported == [4, 0, 4, 4, 4], "forgotten with the links of the other seeds"


def test_a_seed_is_queued_even_if_it_was_refused_as_a_link() -> None:
    intake = _intake()
    links = _links("http://other.test/")
    assert intake.screen(links, PAGE, 0.0).refused
    assert intake.screen(links, LinkContext(depth=0, source=Source.SEED), 0.0).candidates


# -- hooks ---------------------------------------------------------------------------------------------


def test_who_would_ask_is_known_without_any_effect() -> None:
    seen: list[FoundLink] = []

    def accept(link: FoundLink) -> bool:
        seen.append(link)
        return True

    scope = Scope(Reach.HOST)
    scope.join("http://h.test/", "h.test")
    hooks = LinkHooks(accept=accept)
    intake = Intake(scope, ordering(QueueOrder.BREADTH), LIMITS, IntakeRules(), hooks=hooks)
    links = _links("/a", "http://other.test/", "/b", "/login")
    context = LinkContext(1, Source.LINK, found_on="http://h.test/", anchors={links[0].id: Anchor("A", "next")})
    asked = intake.asked(links, context)
    assert [(link.url, link.text, link.rel) for link in asked.links] == [
        ("http://h.test/a", "A", "next"),
        ("http://h.test/b", "", ""),
    ]
    assert (asked.held, seen, intake.next_seq) == ([], [], 1)
    assert len(intake.screen(links, context, 0.0).candidates) == 2
    assert seen == asked.links
    assert intake.asked(links, context).links == []  # decided recently
    assert intake.asked(_links("/deep"), LinkContext(9, Source.LINK)).links == []


def test_links_that_a_rule_holds_back_are_asked_about_too() -> None:
    intake = _intake()
    dated = _links(*(f"/{2000 + number // 12}/{1 + number % 12:02d}/" for number in range(41)))
    held = [refused.link for refused in intake.screen(dated, MONTH, 0.0).held]
    assert held == dated[40:]
    asked = intake.asked(_links("/1999/01/"), MONTH)
    assert ([link.url for link in asked.held], asked.links) == (["http://h.test/1999/01/"], [])


def test_metadata_of_a_hook_wait_for_the_admission() -> None:
    scope = Scope(Reach.ANY)
    hooks = LinkHooks(accept=lambda link: b'{"a":1}' if link.url.endswith("/a") else False)
    intake = Intake(scope, ordering(QueueOrder.BREADTH), LIMITS, IntakeRules(), hooks=hooks)
    first, second = _links("/a", "/b")
    screened = intake.screen([first, second], PAGE, 0.0)
    assert [url.url for url in screened.candidates] == [first.url]
    assert [(refused.link.url, refused.rule) for refused in screened.refused] == [(second.url, "hook")]
    assert intake.metas == {first.id: b'{"a":1}'}
