// The hosts of the crawl, and one of them: its pace, its robots.txt as parsed, every request.

import { get } from "./api.js";
import { card, count, duration, el, facts, hostLink, moment, percent, plural, put, size, table, whyLink, words } from "./dom.js";
import { calm, Growing, renewed } from "./more.js";

const STATES = ["ready", "waiting", "parked", "swapped_out", "over_budget", "blocked", "idle", "dead"];
const KINDS = { ready: "good", waiting: "", parked: "warn", swapped_out: "", idle: "", dead: "bad", busy: "good", blocked: "bad" };
const chosen = { q: "", state: "", sort: "pages" };

function stateTag(host) {
  const state = host.is_blocked ? "blocked" : (host.state ?? host.place);
  return el("span", { class: `tag ${KINDS[state] ?? ""}`.trim() }, words(state));
}

export function hosts(main, app) {
  const note = el("p", {});
  const list = new Growing(async (cursor) => {
    const answer = await get("/api/hosts", { ...chosen, cursor });
    put(note, chosen.q || chosen.state ? `${count(answer.matching)} of ${count(answer.known)}` : plural(answer.known, "host"));
    return { rows: answer.hosts, cursor: answer.cursor };
  }, drawn, () => (chosen.q || chosen.state ? "No host matches. Try a part of its name, or another state." : "No host is known yet: the crawl has just begun."));
  const search = el("input", { type: "search", placeholder: "Part of a host name", "aria-label": "Search hosts", value: chosen.q, oninput: calm((event) => {
    chosen.q = search.value.trim();
    list.begin();
  }) });
  const states = el("select", { "aria-label": "State", onchange: (event) => {
    chosen.state = event.target.value;
    list.begin();
  } }, el("option", { value: "" }, "any state"), STATES.map((state) => el("option", { value: state, selected: chosen.state === state }, words(state))));

  function drawn(rows) {
    return table("Hosts", [
      { name: "host", sort: "name", cls: "name", cell: (host) => hostLink(host.name) },
      { name: "state", cell: (host) => stateTag(host) },
      { name: "pages", sort: "pages", number: true, cell: (host) => count(host.pages) },
      { name: "queued", sort: "queued", number: true, cell: (host) => count(host.queued) },
      { name: "errors", sort: "errors", number: true, wide: true, cell: (host) => count(host.errors) },
      { name: "first byte", sort: "latency", number: true, wide: true, cell: (host) => (host.latency_ms ? duration(host.latency_ms / 1000) : "–") },
      { name: "delay", sort: "delay", number: true, wide: true, cell: (host) => (host.delay_s ? duration(host.delay_s) : "–") },
      { name: "next", wide: true, cls: "next", cell: (host) => el("span", { title: next(host, app) }, next(host, app)) },
    ], rows, { sort: chosen.sort, onsort: (sort) => {
      chosen.sort = sort;
      list.begin();
    } });
  }

  put(main, el("div", { class: "view-head" }, el("h1", {}, "Hosts"), note), el("div", { class: "row" }, search, states), card("", list.element));
  list.begin();
}

function next(host, app) {
  if (host.park_reason) return `in ${duration(host.next_in_s)}: ${host.park_reason}`;
  if (!host.queued) return "–";
  if (app.status?.is_running === false) return "when the crawl goes on";
  if (app.status?.state === "paused") return "paused";
  return host.next_in_s ? `in ${duration(host.next_in_s)}` : "now";
}

// -- one host --

export function host(main, app, name) {
  const place = el("div", { class: "stack" }, el("p", { class: "empty" }, "Reading…"));
  const requests = card("Requests", el("p", { class: "soft" }, "Reading the events of the crawl…"));
  put(main, el("div", { class: "view-head" }, el("h1", { class: "break" }, name), el("p", {}, el("a", { href: "#/hosts" }, "all hosts"))), place, requests);
  const path = `/api/hosts/${encodeURIComponent(name)}`;
  let parts = null;

  const again = renewed(app, async () => {
    try {
      const answer = await get(path);
      if (!parts) {
        parts = partsOf(app, answer.host, () => again());
        put(place, parts.element);
      }
      drawHost(parts, app, answer);
    } catch (error) {
      if (!parts) put(place, el("p", { class: "empty" }, error.message));
    }
  });
  let made = -1;
  renewed(app, async () => {
    try {
      const answer = await get(`${path}/requests`);
      if (answer.made !== made) drawRequests(requests, answer);
      made = answer.made;
    } catch (error) {
      if (made < 0) put(requests, el("h2", {}, "Requests"), el("p", { class: "empty" }, error.message));
    }
  });
}

// The parts of a host that are drawn anew, each alone: what is typed or opened beside them stays.
function partsOf(app, host, again) {
  const state = el("section", { class: "card w6" });
  const robots = el("div", { class: "stack" });
  const steer = steering(app, host, again);
  const grid = el("div", { class: "grid" }, state, el("section", { class: "card w6 stack" }, el("h2", {}, "Steer"), steer.element));
  return { element: [grid, robots], state, robots, robotsText: "", offer: steer.offer };
}

function drawHost(parts, app, answer) {
  const host = answer.host;
  put(parts.state, el("div", { class: "card-head" }, el("h2", {}, "State"), stateTag(host)), facts([
    ["domain", host.domain],
    ["pages", `${count(host.pages)}, ${size(host.bytes)} received`],
    ["fetches", `${count(host.fetches)}, ${plural(host.errors, "error")}; ${plural(host.server_errors_24h, "answer")} with 5xx in 24 h`],
    ["queued", `${plural(host.queued, "URL")}${host.over_budget ? `, ${count(host.over_budget)} over budget and not fetched` : ""}${host.queued && app.status?.is_running !== false && app.status?.state !== "paused" ? `, done in ${duration(host.time_left_s)}` : ""}`],
    ["pace", answer.pace.map((line) => el("div", {}, line))],
    ["in flight", host.in_flight ? count(host.in_flight) : null],
    ["waits for", host.waits_for || null],
    ["next request", next(host, app)],
    ["first byte", host.latency_ms ? duration(host.latency_ms / 1000) : "–"],
    ["known since", `${moment(host.first_seen_at)}, last request ${moment(host.last_fetch_at)}`],
    ["addresses", host.addresses.join(", ") || "not looked up"],
  ]));
  parts.offer(host);
  const text = JSON.stringify([answer.robots, host.robots_tries > 0]);
  if (text === parts.robotsText) return;
  parts.robotsText = text;
  put(parts.robots, answer.robots.length ? answer.robots.map(robots) : card("robots.txt", el("p", { class: "soft" }, host.robots_tries ? "It could not be reached so far." : "It was not fetched yet.")));
}

function steering(app, host, again) {
  if (!app.status || app.status.is_read_only) return { element: el("p", { class: "soft" }, "This page is read-only."), offer: () => {} };
  const isRunning = app.status.is_running;
  const seconds = el("input", { type: "number", min: "0", max: "86400", step: "any", value: host.delay_s || 1, required: true });
  const give = async (name, fields) => {
    if (await app.command(name, fields)) again();
  };
  const block = el("button", { type: "button", class: "danger", id: "block", onclick: async () => {
    const text = `No more requests are made to ${host.name}; what is queued there leaves the queue until it is unblocked.`;
    if (await app.confirm(`Block ${host.name}?`, text, "Block")) give("block", { names: [host.name] });
  } }, "Block this host");
  const unblock = el("button", { type: "button", id: "unblock", onclick: () => give("unblock", { names: [host.name] }) }, "Unblock");
  const pace = el("form", { class: "field-row", onsubmit: (event) => {
    event.preventDefault();
    give("pace", { pattern: host.name, delay: Number(seconds.value) });
  } }, el("label", {}, "Seconds between requests", seconds), el("button", {}, "Set the pace"));
  const element = [
    pace,
    el("div", { class: "row" }, block, unblock,
      isRunning ? el("button", { type: "button", onclick: () => app.command("retry", { hosts: [host.name] }) }, "Retry its dead letters") : null),
    isRunning ? null : el("p", { class: "soft" }, `The crawl does not run: this is for its next run. 'gossamer retry --host ${host.name}' with its folder tries its dead letters again.`),
  ];
  // What is kept for the next run is not known here, so both are offered then.
  const offer = (now) => {
    block.hidden = isRunning && now.is_blocked;
    unblock.hidden = isRunning && !now.is_blocked;
  };
  return { element, offer };
}

function robots(one) {
  const rules = one.rules.length
    ? table(`Rules of ${one.origin}`, [
        { name: "line", number: true, fit: true, cell: (rule) => count(rule.line) },
        { name: "decision", fit: true, cell: (rule) => el("span", { class: `tag ${rule.allows ? "good" : "bad"}` }, rule.allows ? "allow" : "disallow") },
        { name: "rule", cls: "mono break", cell: (rule) => rule.text },
      ], one.rules, { cls: "rules" })
    : el("p", { class: "soft" }, `No rule addresses ${one.token}: everything is allowed.`);
  const left = one.rule_count - one.rules.length;
  return el("section", { class: "card stack" },
    el("div", { class: "card-head" }, el("h2", { class: "break" }, `robots.txt of ${one.origin}`), el("span", { class: "soft small" }, `${one.status || words(one.outcome)}, fetched ${moment(one.fetched_at)}, valid until ${moment(one.expires_at)}`)),
    facts([
      ["crawl delay", one.crawl_delay_s === null ? null : duration(one.crawl_delay_s)],
      ["sitemaps", one.sitemaps.length ? one.sitemaps.map((url) => el("div", {}, url)) : null],
    ]), rules,
    left > 0 ? el("p", { class: "soft small" }, `and ${plural(left, "rule")} more`) : null,
    one.text ? el("details", {}, el("summary", {}, "The text as fetched"), el("pre", { tabindex: "0" }, one.text, one.is_cut ? "\n… (cut)" : "")) : null);
}

function drawRequests(into, answer) {
  put(into, el("div", { class: "card-head" }, el("h2", {}, "Requests"), el("span", { class: "soft small" }, answer.made > answer.requests.length ? `the last ${count(answer.requests.length)} of ${count(answer.made)}` : count(answer.made))),
    answer.note ? el("p", { class: "notice break" }, `Without the events ${answer.note}`) : null,
    answer.requests.length ? table("Requests", [
      { name: "time", fit: true, cell: (one) => moment(one.at) },
      { name: "answer", fit: true, cell: (one) => el("span", { class: `tag ${one.status && one.status < 400 ? "good" : "bad"}` }, one.status || words(one.outcome)) },
      { name: "URL", cls: "url", cell: (one) => [whyLink(one.url), el("span", { class: "second" }, one.purpose, one.reason ? ` – ${one.reason}` : "")] },
      { name: "took", number: true, cell: (one) => duration(one.total_ms / 1000) },
      { name: "size", number: true, wide: true, cell: (one) => size(one.bytes) },
    ], answer.requests) : el("p", { class: "empty" }, "No request was made to this host yet."));
}
