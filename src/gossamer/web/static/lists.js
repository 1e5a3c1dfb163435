// Duplicates, traps and dead letters.

import { get } from "./api.js";
import { card, count, el, moment, percent, plural, put, size, table, whyIdLink, whyLink, words } from "./dom.js";
import { Growing } from "./more.js";
import { pageTitle } from "./pages.js";

export function duplicates(main) {
  let kind = "all";
  const list = new Growing(async (cursor) => {
    const answer = await get("/api/duplicates", { kind, cursor });
    return { rows: answer.pages, cursor: answer.cursor };
  }, (rows) => table("Duplicates", [
    { name: "page", cls: "url half", cell: (one) => [pageTitle(one), el("span", { class: "second" }, one.url)] },
    { name: "similarity", number: true, cell: (one) => (one.similarity >= 1 ? "same" : one.similarity.toFixed(2)) },
    { name: "as", cls: "url half", wide: true, cell: (one) => (one.same_as ? whyLink(one.same_as) : "a page that is gone") },
  ], rows), "No page has the content of another one.");
  put(main, el("div", { class: "view-head" }, el("h1", {}, "Duplicates"), el("p", {}, "pages with the content of another, or nearly")),
    el("div", { class: "row" }, el("select", { "aria-label": "Kind", onchange: (event) => {
      kind = event.target.value;
      list.begin();
    } }, el("option", { value: "all" }, "same or nearly the same"), el("option", { value: "exact" }, "the same content"), el("option", { value: "near" }, "nearly the same text"))),
    card("", list.element));
  list.begin();
}

// -- traps --

export function traps(main, app) {
  const place = el("div", { class: "stack" }, el("p", { class: "empty" }, "Reading…"));
  const actions = el("div", { class: "row" });
  put(main, el("div", { class: "view-head" }, el("h1", {}, "Traps"), el("p", {}, "patterns of URLs whose pages brought nothing new; their URLs are held, not lost")), actions, place);

  async function read() {
    try {
      draw((await get("/api/traps")).traps);
    } catch (error) {
      put(place, el("p", { class: "empty" }, error.message));
    }
  }

  async function release(trap) {
    const text = `The crawl queues ${plural(trap.held, "URL")} of this pattern, and it is not put into quarantine again.`;
    if (await app.confirm(`Release ${trap.name}?`, text, "Release") && await app.command("release", { pattern: trap.name })) read();
  }

  async function releaseAll(held) {
    const text = `The crawl queues ${plural(held.reduce((sum, trap) => sum + trap.held, 0), "URL")} of ${plural(held.length, "pattern")}, and none of them is put into quarantine again.`;
    if (await app.confirm("Release all patterns?", text, "Release all") && await app.command("release")) read();
  }

  function draw(found) {
    const held = found.filter((trap) => !trap.is_released);
    put(actions, held.length > 1 && app.status?.can_control ? el("button", { type: "button", onclick: () => releaseAll(held) }, "Release all") : []);
    if (!found.length) return put(place, el("p", { class: "empty" }, "No pattern is in quarantine."));
    put(place, found.map((trap) => el("section", { class: "card stack" },
      el("div", { class: "card-head" }, el("h2", { class: "mono break" }, trap.name),
        trap.is_released ? el("span", { class: "tag good" }, "released")
          : app.status?.can_control ? el("button", { type: "button", class: "release", onclick: () => release(trap) }, "Release")
            : el("span", { class: "tag warn" }, "in quarantine")),
      el("p", {}, `${trap.demotes_only ? "Demoted" : `${plural(trap.held, "URL")} held`}; ${trap.reason || `${count(trap.new)} of ${plural(trap.fetched, "page")} had new content`}. Since ${moment(trap.since)}.`),
      el("ul", { class: "plain small" }, trap.samples.map((url) => el("li", { class: "break" }, whyLink(url)))))));
  }

  read();
}

// -- dead letters --

export function dead(main, app) {
  const chosen = { outcome: "", host: "" };
  const list = new Growing(async (cursor) => {
    const answer = await get("/api/dead", { ...chosen, cursor });
    return { rows: answer.pages, cursor: answer.cursor };
  }, (rows) => table("Dead letters", [
    { name: "URL", cls: "url", cell: (one) => [whyIdLink(one), one.purpose === "page" ? null : [" ", el("span", { class: "tag" }, one.purpose)], one.error ? el("span", { class: "second" }, one.error) : null] },
    { name: "outcome", cell: (one) => el("span", { class: "tag bad" }, `${words(one.outcome)}${one.status ? ` ${one.status}` : ""}`) },
    { name: "when", wide: true, cell: (one) => moment(one.fetched_at) },
  ], rows), () => (chosen.outcome ? "No dead letter has this outcome." : "There are no dead letters: every URL was fetched, is queued, or was refused by a rule."));
  const outcomes = el("select", { "aria-label": "Outcome", onchange: (event) => {
    chosen.outcome = event.target.value;
    list.begin();
  } }, el("option", { value: "" }, "any outcome"));
  const actions = el("div", { class: "row" });
  let known = "";

  function update(status) {
    const names = Object.keys(status.figures.totals.outcomes).filter((name) => !["ok", "redirect", "not_modified", "other_success", "links_only"].includes(name)).sort();
    if (names.join() !== known) {
      known = names.join();
      put(outcomes, el("option", { value: "" }, "any outcome"), names.map((name) => el("option", { value: name, selected: name === chosen.outcome }, words(name))));
    }
    if (Boolean(actions.firstChild) === status.can_control) return;
    put(actions, status.can_control ? el("button", { type: "button", onclick: retry }, "Retry those chosen") : []);
  }

  async function retry() {
    const what = chosen.outcome ? `all dead letters with the outcome ${words(chosen.outcome)}` : "all dead letters";
    const fields = chosen.outcome ? { outcomes: [chosen.outcome] } : {};
    if (await app.confirm("Retry?", `The crawl queues ${what} again.`, "Retry") && await app.command("retry", fields)) list.begin();
  }

  put(main, el("div", { class: "view-head" }, el("h1", {}, "Dead letters"), el("p", {}, "URLs that failed for good")), el("div", { class: "row" }, outcomes, actions), card("", list.element));
  app.listeners.add(update);
  list.begin();
}
