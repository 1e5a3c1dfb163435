// The pages that were fetched, and one of them as it was archived: in a frame that can do nothing.

import { address, get } from "./api.js";
import { card, count, el, facts, moment, plural, put, size, table, whyIdLink, whyLink } from "./dom.js";
import { calm, Growing } from "./more.js";

const chosen = { q: "" };

export function pageTitle(one) {
  return el("a", { href: `#/pages/${one.id}` }, one.title || one.url);
}

export function pages(main) {
  const list = new Growing(async (cursor) => {
    const answer = await get("/api/pages", { ...chosen, cursor });
    return { rows: answer.pages, cursor: answer.cursor, note: answer.cursor && chosen.q ? `${plural(answer.scanned, "URL")} looked at in this step` : "" };
  }, (rows) => table("Pages", [
    { name: "page", cls: "url", cell: (one) => [pageTitle(one), el("span", { class: "second" }, one.url)] },
    { name: "type", wide: true, cell: (one) => one.content_type },
    { name: "size", number: true, cell: (one) => size(one.bytes) },
    { name: "depth", number: true, wide: true, cell: (one) => count(one.depth) },
    { name: "fetched", wide: true, cell: (one) => moment(one.fetched_at) },
  ], rows), () => (chosen.q ? "No page has these words in its URL or title." : "No page was fetched yet."));
  const search = el("input", { type: "search", "aria-label": "Search pages by URL or title", placeholder: "Words in the URL or title", value: chosen.q, oninput: calm(() => {
    chosen.q = search.value.trim();
    list.begin();
  }) });
  put(main, el("div", { class: "view-head" }, el("h1", {}, "Pages"), el("p", {}, "by URL or title; 'gossamer search' looks into the texts")), el("div", { class: "row" }, search), card("", list.element));
  list.begin();
}

// -- one page --

export function page(main, app, id) {
  const title = el("h1", { class: "break" }, "Archived page");
  const place = el("div", { class: "stack" }, el("p", { class: "empty" }, "Reading the archive…"));
  put(main, el("div", { class: "view-head" }, title, el("p", {}, el("a", { href: "#/pages" }, "all pages"))), place);
  get(`/api/pages/${encodeURIComponent(id)}`).then((answer) => {
    put(title, answer.page.title || answer.page.url);
    draw(place, answer);
  }, (error) => put(place, el("p", { class: "empty" }, error.message)));
}

function draw(into, answer) {
  const one = answer.page;
  // No token of the sandbox is given: no scripts, no forms, no origin, no way out.
  const copy = () => el("iframe", { class: "copy", sandbox: "", src: address(answer.copy), title: "The archived copy", referrerpolicy: "no-referrer" });
  const text = () => el("pre", { tabindex: "0" }, answer.text || "No text was found in it.", answer.is_text_cut ? "\n… (cut)" : "");
  const headers = () => table("Headers", [
    { name: "header", cls: "mono", cell: (header) => header.name },
    { name: "value", cls: "mono break", cell: (header) => header.value },
  ], answer.headers);
  const panel = el("div", { role: "tabpanel", id: "panel", tabindex: "0" });
  const tabs = [["Copy", copy], ["Text", text], ["Headers", headers]].map(([name, make], place) => {
    const tab = el("button", { type: "button", role: "tab", "aria-controls": "panel", id: `tab-${name.toLowerCase()}` }, name);
    tab.addEventListener("click", () => choose(place));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) choose((place + step + 3) % 3, true);
    });
    return { tab, make };
  });

  function choose(place, withFocus = false) {
    tabs.forEach(({ tab, make }, number) => {
      tab.setAttribute("aria-selected", String(number === place));
      tab.tabIndex = number === place ? 0 : -1;
      if (number === place) {
        panel.setAttribute("aria-labelledby", tab.id);
        put(panel, make());
        if (withFocus) tab.focus();
      }
    });
  }

  put(into,
    el("section", { class: "card" }, facts([
      ["URL", whyIdLink(one)],
      ["answer", `${answer.http_status}, ${one.content_type}, ${size(one.bytes)}`],
      ["fetched", `${moment(one.fetched_at)}${answer.address ? ` from ${answer.address}` : ""}`],
      ["same as", one.same_as ? [whyLink(one.same_as), one.similarity < 1 ? ` (similarity ${one.similarity})` : ""] : null],
      ["archived in", answer.archived_in],
    ])),
    el("section", { class: "card stack" }, el("div", { class: "tabs", role: "tablist", "aria-label": "Views of the archived page" }, tabs.map(({ tab }) => tab)),
      el("p", { class: "soft small" }, "The copy is shown without its scripts, and without anything from elsewhere."), panel));
  choose(0);
}
