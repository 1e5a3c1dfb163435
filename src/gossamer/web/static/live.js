// What happens now: the newest fetches and errors, newest first.

import { calm } from "./more.js";
import { card, count, duration, el, hostLink, moment, plural, put, size, whyLink, words } from "./dom.js";

const MAX_ROWS = 400;
const KINDS = [["fetches", "fetches and errors"], ["errors", "only errors"], ["all", "all, also what robots.txt disallows"]];
const chosen = { show: "fetches", host: "", q: "" };

export function live(main, app) {
  let isPaused = false;
  let waiting = [];
  let leftOut = 0;
  const body = el("tbody", {});
  const note = el("p", {});
  const empty = el("p", { class: "empty" });
  const pause = el("button", { type: "button", "aria-pressed": "false", onclick: () => {
    isPaused = !isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
    pause.textContent = isPaused ? "Go on" : "Hold still";
    if (!isPaused) add(waiting.splice(0));
    say();
  } }, "Hold still");

  function say() {
    put(note, isPaused ? `${plural(waiting.length, "event waits", "events wait")}` : leftOut ? `${count(leftOut)} more happened than can be shown` : "");
    empty.hidden = body.childElementCount > 0;
    pause.hidden = app.status?.is_running === false && !isPaused;  // nothing comes that could be held
    empty.textContent = app.status?.is_running === false
      ? "The crawl does not run, and nothing of its last events matches."
      : "Nothing yet. Fetches appear here as they end.";
  }

  function add(events) {
    body.prepend(...events.map(row).reverse());
    while (body.childElementCount > MAX_ROWS) body.lastElementChild.remove();
  }

  function receive(batch) {
    leftOut += batch.left_out;
    if (isPaused) waiting = [...waiting, ...batch.events].slice(-MAX_ROWS);
    else add(batch.events);
    say();
  }

  function begin() {
    put(body);
    leftOut = 0;
    say();
    app.listen({ ...chosen }, receive);
  }

  const field = (name, label, holder) => el("input", { type: "search", "aria-label": label, placeholder: holder, value: chosen[name], oninput: calm((event) => {
    chosen[name] = event.target.value.trim();
    begin();
  }) });
  put(main, el("div", { class: "view-head" }, el("h1", {}, "Live"), note),
    el("div", { class: "row" },
      el("select", { "aria-label": "Which events", onchange: (event) => {
        chosen.show = event.target.value;
        begin();
      } }, KINDS.map(([value, name]) => el("option", { value, selected: chosen.show === value }, name))),
      field("q", "Part of the URL", "Part of the URL"), field("host", "Host", "Host name"), pause),
    card("", el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Events" }, el("table", { class: "live" }, el("caption", { class: "unseen" }, "Events, newest first"),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "time"), el("th", { scope: "col" }, "what"), el("th", { scope: "col" }, "URL"), el("th", { scope: "col", class: "n wide" }, "took"), el("th", { scope: "col", class: "n wide" }, "size"))), body)), empty));
  app.listeners.add(say);
  begin();
}

// An event without a URL or host, such as a command, is shown by its text.
function where(event) {
  const text = [event.kind, event.text].filter(Boolean).join(" – ");
  if (!event.url && !event.host) return el("span", { class: "first" }, text || words(event.event));
  return [event.url ? whyLink(event.url) : hostLink(event.host), text ? el("span", { class: "second" }, text) : null];
}

function row(event) {
  const kind = event.is_error ? "bad" : event.event === "fetch_ok" ? "good" : "";
  const what = event.status || words(event.outcome || event.event);
  return el("tr", {},
    el("td", {}, moment(event.at)),
    el("td", {}, el("span", { class: `tag ${kind}`.trim() }, what)),
    el("td", { class: "url" }, where(event)),
    el("td", { class: "n wide" }, event.total_ms ? duration(event.total_ms / 1000) : ""),
    el("td", { class: "n wide" }, event.bytes ? size(event.bytes) : ""));
}
