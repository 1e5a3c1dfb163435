// What the crawl is set to, and what can be changed while it runs.

import { get } from "./api.js";
import { card, el, put, table } from "./dom.js";

export function settings(main, app) {
  const control = el("div", { class: "grid" });
  const list = card("All settings", el("p", { class: "soft" }, "Reading…"));
  put(main, el("div", { class: "view-head" }, el("h1", {}, "Settings and control")), control, list);
  let known = [];
  let canControl = null;

  async function read() {
    try {
      known = (await get("/api/settings")).settings;
      drawList("");
      drawControl();
    } catch (error) {
      put(list, el("h2", {}, "All settings"), el("p", { class: "empty" }, error.message));
    }
  }

  function drawList(text) {
    const rows = known.filter((one) => `${one.key} ${one.help}`.toLowerCase().includes(text.toLowerCase()));
    const search = el("input", { type: "search", "aria-label": "Search settings", placeholder: "Part of a name", value: text, oninput: (event) => {
      drawList(event.target.value);
      list.querySelector("input").focus();
      list.querySelector("input").setSelectionRange(event.target.value.length, event.target.value.length);
    } });
    put(list, el("div", { class: "card-head" }, el("h2", {}, "All settings"), search), rows.length ? table("Settings", [
      { name: "setting", cls: "mono", fit: true, cell: (one) => one.key },
      { name: "value", cls: "mono break", cell: (one) => shown(one.value) },
      { name: "differs", wide: true, cell: (one) => (shown(one.value) === shown(one.default) ? "" : el("span", { class: "tag" }, "changed")) },
      { name: "meaning", cls: "soft", wide: true, cell: (one) => one.help },
    ], rows) : el("p", { class: "empty" }, "No setting has this in its name or meaning."));
  }

  function form(title, hint, fields, action, send) {
    return el("form", { class: "card w6 stack", onsubmit: async (event) => {
      event.preventDefault();
      if (await send()) {
        event.target.reset();
        read();
      }
    } }, el("h2", {}, title), el("p", { class: "soft" }, hint), el("div", { class: "field-row" }, fields, el("button", {}, action)));
  }

  function drawControl() {
    if (!app.status) return;
    canControl = app.status.can_control;
    if (app.status.is_read_only) {
      put(control, el("p", { class: "card soft" }, "This page is read-only: it was started with --read-only."));
      return;
    }
    const isRunning = app.status.is_running;
    const seeds = el("textarea", { name: "seeds", required: true, placeholder: "https://example.org/" });
    const changeable = known.filter((one) => one.is_changeable);
    const key = el("select", { name: "key" }, changeable.map((one) => el("option", { value: one.key }, `${one.key} (${shown(one.value)})`)));
    const value = el("input", { name: "value", required: true, placeholder: "a number, or none" });
    const pattern = el("input", { name: "pattern", required: true, placeholder: "*.example.org" });
    const delay = el("input", { name: "delay", type: "number", min: "0", max: "86400", step: "any", required: true });
    const names = el("input", { name: "names", required: true, placeholder: "example.org" });
    const listed = () => names.value.split(/[\s,]+/).filter(Boolean);
    put(control,
      isRunning ? null : el("p", { class: "card soft" }, `The crawl does not run: what is changed here is for its next run. 'gossamer resume ${app.status.name}' continues it.`),
      form("Add seeds", "One URL or domain per line. They extend the scope of the crawl.", el("label", {}, "Seeds", seeds), "Add", () => app.command("add", { seeds: seeds.value.split("\n").map((line) => line.trim()).filter(Boolean) })),
      form("Change a limit", isRunning ? "It acts at once, and is kept for the next run." : "It is kept for the next run.", [el("label", {}, "Limit", key), el("label", {}, "New value", value)], "Change", () => app.command("set", { key: key.value, value: value.value.trim() })),
      form("Set a pace", "For the hosts that match a pattern: example.org, *.example.org or *.", [el("label", {}, "Hosts", pattern), el("label", {}, "Seconds between requests", delay)], "Set", () => app.command("pace", { pattern: pattern.value.trim(), delay: Number(delay.value) })),
      form("Block hosts or domains", "No more requests are made to them. What is queued there leaves the queue until they are unblocked.", [el("label", {}, "Names", names), el("button", { type: "button", onclick: async () => {
        if (listed().length && await app.command("unblock", { names: listed() })) read();
      } }, "Unblock")], "Block", async () => await app.confirm(`Block ${listed().join(", ")}?`, "No more requests are made there.", "Block") && app.command("block", { names: listed() })));
  }

  app.listeners.add((status) => {
    if (known.length && status.can_control !== canControl) drawControl();
  });
  read();
}

// An entry with fields, such as a pace: "example.org: delay 2, connections 1".
function described(entry) {
  const { host, ...rest } = entry;
  const fields = Object.entries(rest).filter(([, value]) => value !== null && value !== "").map(([name, value]) => `${name} ${value}${name === "delay" ? " s" : ""}`).join(", ");
  return host === undefined ? fields : `${host}: ${fields}`;
}

function shown(value) {
  if (value === null || value === "") return "none";
  if (Array.isArray(value)) return value.length ? value.map((one) => (typeof one === "object" ? described(one) : one)).join("; ") : "none";
  return String(value);
}
