"""Which links a page has, as they are in its HTML.

Links are decided only here: the renderer prints what it returns, and the truth resolves
it as a browser would. Invariants: every page that is not hidden is linked from its parent;
leaves use no relative links, so that a copy's links have the same targets as the
original's; odd spellings (utm_, fragments, dot segments, capitals in the host) lead to pages
that are linked plainly elsewhere or mean the same.
Cost: about 25 µs per page with 30 links.
"""

from __future__ import annotations

from functools import lru_cache

from gossamer.sim.web.paths import BRANCHES, PageCard, PlanKey, card_of
from gossamer.sim.web.spread import mix, step
from gossamer.sim.web.web import RobotsKind, Site, WebPlan

NAV_PAGES = 5


@lru_cache(maxsize=1 << 14)
def nav_hrefs(key: PlanKey, site: Site) -> tuple[str, ...]:
    """The links on every page of a site: home and its first children."""
    cards = [card_of(key, site, number) for number in range(min(site.pages, NAV_PAGES + 1))]
    return tuple(card.href for card in cards if not card.is_hidden)


def body_hrefs(key: PlanKey, site: Site, number: int, port: int) -> list[str]:
    """The links of a page besides the navigation, in document order."""
    card = card_of(key, site, number)
    hrefs = _children(key, site, number)
    if number == 0:
        hrefs += _neighbours(key.plan, site, port)
    hrefs += _asides(key.plan, site, number, card)
    room = _wanted(key.plan, card) - len(hrefs) - len(nav_hrefs(key, site))
    cross = round(key.plan.links * key.plan.cross_links)
    if cross:
        hrefs += _cross_hrefs(key, card, min(cross, max(room, 1)), port)
    if site.pages > 1 and room > cross:
        hrefs += _local_hrefs(key, site, card, room - cross, port)
    return hrefs


def nofollow_hrefs(site: Site, number: int) -> tuple[str, ...]:
    """Links marked rel=nofollow: into the forbidden part, if there is one."""
    return (f"/private/{number}",) if site.robots is RobotsKind.RULES else ()


def _wanted(plan: WebPlan, card: PageCard) -> int:
    """Between half and one and a half times the mean."""
    return plan.links // 2 + (card.chance >> 20) % (plan.links + 1)


def _children(key: PlanKey, site: Site, number: int) -> list[str]:
    first = BRANCHES * number + 1
    cards = [card_of(key, site, child) for child in range(first, min(first + BRANCHES, site.pages))]
    return [card.href for card in cards if not card.is_hidden]


def _neighbours(plan: WebPlan, site: Site, port: int) -> list[str]:
    """What makes every host reachable from every other; see the docstring of `web`."""
    names = []
    sibling = plan.sibling_name(site)
    if sibling != site.name:
        names.append(sibling)
    if plan.cross_links > 0:
        available = plan.available_hosts
        names += [plan.host_name_at((plan.fanout * site.rank + n) % available) for n in range(plan.fanout)]
        if (broken := available + site.rank) < plan.host_count:
            names.append(plan.host_name_at(broken))
    return [f"http://{name}:{port}/" for name in names if name != site.name]


def _asides(plan: WebPlan, site: Site, number: int, card: PageCard) -> list[str]:
    """Links that do not lead to a page: forbidden, broken, away, documents, pictures, other schemes."""
    chance = card.chance
    hrefs = ["#top", f"/img/{number % min(site.pages, 5)}.png"]
    if site.robots is RobotsKind.RULES:
        hrefs += [f"/private/{number}", f"/search?q={number}"]
    if (chance >> 32 & 0xFFF) < plan.broken * 0x1000:
        hrefs.append(f"/{'gone' if chance & 1 else 'missing'}/{number}")
    if (chance >> 36 & 0xFFF) < plan.documents * 0x1000:
        hrefs.append(f"/files/{number}.pdf")
    if (chance >> 44 & 0xFFF) < plan.redirects * 0x800:
        hrefs.append(f"/away/{number}")
    hrefs += ["mailto:office@example.test", "javascript:void(0)"]
    return hrefs


def _cross_hrefs(key: PlanKey, card: PageCard, count: int, port: int) -> list[str]:
    plan = key.plan
    hosts = plan.host_count
    state = mix(card.chance, "cross")
    hrefs = []
    for n in range(count):
        state = step(state)
        name = _name_at(key, (state >> 33) % hosts)
        if plan.untidy_links and n % 8 == 7:
            name = name.upper()
        hrefs.append(f"http://{name}:{port}/")
    return hrefs


@lru_cache(maxsize=1 << 15)
def _name_at(key: PlanKey, rank: int) -> str:
    return key.plan.host_name_at(rank)


def _local_hrefs(key: PlanKey, site: Site, card: PageCard, count: int, port: int) -> list[str]:
    state = mix(card.chance, "local")
    odd_below = key.plan.untidy_links * 0x1000
    hrefs = []
    for _ in range(count):
        state = step(state)
        other = card_of(key, site, (state >> 33) % site.pages)
        if other.is_hidden:
            continue
        href = other.href
        if (state >> 20 & 0xFFF) < odd_below:
            href = _odd_spelling(site, card, href, state >> 12 & 7, port)
        hrefs.append(href)
    return hrefs


def _odd_spelling(site: Site, card: PageCard, href: str, form: int, port: int) -> str:
    """Another way to write the same link."""
    if form < 2:
        return f"http://{site.name}:{port}{href}"
    if form == 2:
        return f"//{site.name}:{port}{href}"
    if form == 3:
        return f"{href}#section-2"
    if form == 4:
        return f"{href}{'&' if '?' in href else '?'}utm_source=feed&utm_medium=web"
    if form == 5:
        return f"/nowhere/..{href}"
    if card.is_leaf:
        return href
    return "../" * (card.path.partition("?")[0].count("/") - 1) + href[1:] or "."
