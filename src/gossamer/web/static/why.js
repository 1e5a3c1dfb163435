// The whole life of one URL: what led to it, which rules decided, every request, where it is stored.

import { get } from "./api.js";
import { card, count, duration, el, facts, hostLink, moment, plural, put, size, table, whyLink, words } from "./dom.js";

const FOUND = { seed: "a seed", link: "by a link", redirect: "by a redirect", sitemap: "in a sitemap", notice: "by a notice", probe: "our own probe" };

export function why(main, app, asked) {
  const result = el("div", { class: "stack", "aria-live": "polite" });
  const search = el("input", { type: "search", "aria-label": "URL", placeholder: "https://example.org/page", value: asked?.startsWith("id:") ? "" : (asked ?? ""), name: "url" });
  put(main, el("div", { class: "view-head" }, el("h1", {}, "URL inspector"), el("p", {}, "why a URL was fetched, or was not")),
    el("form", { class: "row", onsubmit: (event) => {
      event.preventDefault();
      const url = search.value.trim();
      if (url) location.hash = `#/why/${encodeURIComponent(url)}`;
    } }, search, el("button", { class: "primary" }, "Inspect")), result);
  if (!asked) {
    put(result, el("p", { class: "empty" }, "Enter a URL, whether the crawl knows it or not: the answer names the page that led to it, the rule that refused it, or what it waits for."));
    return;
  }
  put(result, el("p", { class: "empty" }, "Reading the events of the crawl…"));
  const reading = asked.startsWith("id:") ? get(`/api/pages/${encodeURIComponent(asked.slice(3))}/why`) : get("/api/why", { url: asked });
  reading.then((answer) => draw(result, answer), (error) => put(result, el("p", { class: "empty" }, error.message)));
}

function headline(life) {
  const row = life.row;
  if (!row) return life.held_back ? `Held back ${life.held_back}` : life.refusals.length ? `Not queued: refused by ${words(life.refusals[0].rule)}` : "Not known: no fetched page links to it";
  if (row.state === "queued") return row.attempt ? `Queued; ${plural(row.attempt, "attempt")} failed` : "Queued";
  const what = `${words(row.outcome)}${row.status ? ` ${row.status}` : ""}`;
  return `${row.state === "dead" ? "Dead letter" : "Done"}: ${what}, ${moment(row.fetched_at)}${row.error ? `: ${row.error}` : ""}`;
}

function tone(life) {
  if (!life.row) return "warn";
  if (life.row.state === "done") return life.row.status && life.row.status < 400 ? "good" : "";  // a refusal is no success
  return life.row.state === "dead" ? "bad" : "";
}

function draw(into, answer) {
  const life = answer.life;
  const row = life.row;
  const path = [...life.ancestors].reverse();
  put(into,
    el("section", { class: "card stack" },
      el("div", { class: "row" }, el("span", { class: `tag ${tone(life)}`.trim() }, life.state), el("b", { class: "break" }, headline(life))),
      answer.advice ? el("p", { class: "notice" }, `What helps: ${answer.advice}`) : null,
      answer.note ? el("p", { class: "notice break" }, `Without the events ${answer.note}`) : null,
      facts([
        ["URL", life.url],
        ["compared as", life.key === life.url ? null : life.key],
        ["host", [hostLink(life.host), ` (domain ${life.domain})`]],
        ["found", row ? `${moment(row.found_at)}, depth ${row.depth}, ${FOUND[life.found_as] ?? life.found_as}` : null],
        ["seed", life.seed ? `${life.seed.url}, with ${life.seed.stated}` : null],
        ["robots.txt", robots(life.robots)],
        ["pace", answer.pace.map((line) => el("div", {}, line))],
        ["queue", life.queue ? `${life.queue.ahead === null ? "far back" : `${count(life.queue.ahead)} before it`}, ${count(life.queue.queued)} at its host` : null],
        ["waits for", life.waits_for.length ? life.waits_for.map((text) => el("div", {}, text)) : null],
        ["redirect to", row?.redirect_to ? whyLink(row.redirect_to) : null],
        ["content", row?.content_type ? `${row.content_type}, ${size(row.content_bytes)}${row.language ? `, language ${row.language}` : ""}${row.truncated ? `, truncated (${row.truncated})` : ""}` : null],
        ["title", row?.title],
        ["same as", life.duplicate_of ? whyLink(life.duplicate_of) : null],
        ["nearly as", life.near_duplicate_of ? [whyLink(life.near_duplicate_of), ` (similarity ${row.similarity.toFixed(2)})`] : null],
        ["archived", row?.archived ? [`${row.archived.file} at ${count(row.archived.offset)} `, el("a", { href: `#/pages/${life.id}` }, "show the copy")] : null],
        ["node", life.place ? `shard ${life.place.shard}: ${life.place.owner || "no owner"}${life.place.stored_on ? `, stored on ${life.place.stored_on}` : ""}` : null],
      ])),
    card("The path from the seed", el("ol", { class: "path" },
      path.map((one) => el("li", {}, whyLink(one.url), el("div", { class: "soft small" }, `depth ${one.depth}, ${FOUND[one.source] ?? one.source}, ${moment(one.found_at)}`))),
      el("li", {}, el("b", {}, life.url), row ? el("div", { class: "soft small" }, `depth ${row.depth}, ${FOUND[life.found_as] ?? life.found_as}`) : el("div", { class: "soft small" }, "no fetched page led to it")))),
    life.refusals.length ? card("Refused", table("Rules that refused it", [
      { name: "rule", cell: (one) => words(one.rule) },
      { name: "because", cls: "break", cell: (one) => one.detail },
      { name: "when", cell: (one) => (one.at ? moment(one.at) : "decided now") },
    ], life.refusals)) : null,
    life.attempts.length ? card("Requests", table("Requests for it", [
      { name: "time", fit: true, cell: (one) => moment(one.at) },
      { name: "answer", fit: true, cell: (one) => el("span", { class: `tag ${one.status && one.status < 400 ? "good" : "bad"}` }, one.status || words(one.outcome)) },
      { name: "what", cls: "break", cell: (one) => [one.reason && one.reason !== one.outcome ? one.reason : words(one.outcome), one.target ? ` to ${one.target}` : "", one.event === "retry" ? `, again after ${duration(one.wait_s)}` : ""] },
      { name: "took", number: true, cell: (one) => duration(one.total_ms / 1000) },
    ], life.attempts)) : null,
    life.notes.length ? card("Notes", el("ul", { class: "plain" }, life.notes.map((note) => el("li", { class: "break" }, note)))) : null);
}

function robots(one) {
  if (!one.is_known) return `of ${one.origin} is unknown: never fetched, or it could not be reached`;
  const line = one.line_number ? `line ${one.line_number}: ${one.line}` : "no rule matches it";
  return `${one.is_allowed ? "allowed" : "not allowed"}: ${line}`;
}
