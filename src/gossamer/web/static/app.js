// The frame of the dashboard: views by address, the stream of figures, commands, keys, light and dark.

import { command, events, get } from "./api.js";
import { count, el, put } from "./dom.js";
import { duplicates, dead, traps } from "./lists.js";
import { host, hosts } from "./hosts.js";
import { live } from "./live.js";
import { overview, sample } from "./overview.js";
import { page, pages } from "./pages.js";
import { settings } from "./settings.js";
import { why } from "./why.js";

// Path, name, view, and what stands beside the name.
const VIEWS = [
  ["", "Overview", overview],
  ["hosts", "Hosts", hosts, (status) => status.hosts_known],
  ["live", "Live", live],
  ["why", "URL inspector", why],
  ["pages", "Pages", pages, (status) => status.pages],
  ["duplicates", "Duplicates", duplicates, (status) => status.duplicates + status.near_duplicates],
  ["traps", "Traps", traps],
  ["dead", "Dead letters", dead, (status) => status.dead],
  ["settings", "Settings", settings],
];
const NOT_FINISHED = { signal: "stopped", stopped: "stopped", left: "stopped", failed: "failed", interrupted: "interrupted" };
const DETAILS = { hosts: host, pages: page };

const main = document.getElementById("main");

// What views get: the newest status, and what they may do.
const app = {
  status: null,
  isConnected: false,
  isOver: false,  // the dashboard's process has ended
  listeners: new Set(),
  eventListener: null,
  command: give,
  confirm: ask,
  toast,
  listen(filter, onevents) {
    app.eventListener = onevents;
    connect(filter);
  },
};
let leave = () => {};
let stream = null;
let streamFilter = "";

// -- views --

function parts() {
  return location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
}

function route(event) {
  const [name = "", detail] = parts();
  const entry = VIEWS.find(([path]) => path === name);
  leave();
  for (const note of document.querySelectorAll(".toast.bad")) note.remove();  // it is about the view before
  app.listeners.clear();
  if (app.eventListener) app.listen({ show: "none" }, null);
  const view = !entry ? lost : detail !== undefined && DETAILS[name] ? DETAILS[name] : entry[2];
  put(main);
  leave = view(main, app, detail) ?? (() => {});
  for (const link of document.querySelectorAll("#views a")) {
    const isCurrent = link.dataset.view === name;
    if (isCurrent) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "center" });
    }
    if (!isCurrent) link.removeAttribute("aria-current");
  }
  document.title = `${entry ? entry[1] : "Not found"} – Gossamer`;
  if (event) {
    main.focus();
    window.scrollTo(0, 0);
  }
  if (app.status) for (const listener of app.listeners) listener(app.status);
}

function lost(into) {
  put(into, el("h1", {}, "There is no such view"), el("p", { class: "empty" }, "Choose one of the views at the side."));
}

function drawViews() {
  put(document.getElementById("views"), el("ul", {}, VIEWS.map(([path, name]) => {
    const link = el("a", { href: `#/${path}` }, el("span", {}, name), el("span", { class: "count" }));
    link.dataset.view = path;
    return el("li", {}, link);
  })));
}

// -- figures --

function connect(filter) {
  if (app.isOver) return;
  const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value)).toString();
  if (query === streamFilter && stream?.isOpen) return;
  stream?.close();
  streamFilter = query;
  stream = events(query, (name, content) => {
    if (name === "status") receive(content);
    else if (name === "events") app.eventListener?.(content);
    else if (name === "trouble") banner(`The crawl cannot be read now: ${content.error}`);
    else if (name === "end") end(content);
  }, (reason) => {
    disconnect("not connected", reason || `The connection is lost; trying again. If the dashboard has ended, this shows it again: ${app.status?.show_again ?? "gossamer ui DIR"}`);
    if (!reason) setTimeout(() => query === streamFilter && connect(filter), 3000);  // unless another filter was chosen meanwhile
  });
}

// The process of the dashboard has said that it ends: nothing more will come.
function end(last) {
  stream.close();
  streamFilter = null;
  const again = app.status?.show_again ?? "gossamer ui DIR";
  if (last.is_running) disconnect("dashboard closed", `This dashboard has ended; the crawl goes on. To see it: ${again}`);
  else disconnect(!app.status || app.status.is_running ? "ended" : stateName(app.status), `The crawl has ended, and this dashboard with it. To see it again: ${again}`, "info");
  app.isOver = true;
}

// Nothing is known about the crawl now: neither its state nor its buttons may claim that it runs.
function disconnect(state, text, kind = "") {
  app.isConnected = false;
  drawState(state);
  put(document.getElementById("actions"));
  banner(text, kind);
}

function banner(text, kind = "") {
  const place = document.getElementById("banner");
  place.hidden = !text;
  place.className = `banner ${kind}`.trim();
  if (place.textContent !== text) place.textContent = text;
}

function receive(status) {
  const before = app.status;
  app.status = status;
  banner("");
  document.getElementById("crawl-name").textContent = `\u200e${status.name}`;
  document.getElementById("crawl-name").title = status.name;
  const isNew = !app.isConnected || stateName(before) !== stateName(status);
  app.isConnected = true;
  if (isNew) drawState(stateName(status));
  if (isNew || before.is_running !== status.is_running) drawActions(status);
  VIEWS.forEach(([path, , , beside]) => {
    if (!beside) return;
    const number = beside(status);
    document.querySelector(`#views a[data-view="${path}"] .count`).textContent = number ? count(number) : "";
  });
  sample(status);
  for (const listener of app.listeners) listener(status);
}

// A crawl that was stopped can be resumed, one that has finished has nothing to do.
function stateName(status) {
  return status.is_running ? status.state : (NOT_FINISHED[status.finished] ?? status.state);
}

function drawState(name) {
  const pill = document.getElementById("state");
  pill.textContent = name;
  pill.className = `pill ${name}`;
}

function drawActions(status) {
  const paused = status.state === "paused";
  put(document.getElementById("actions"), status.can_control ? [
    el("button", { type: "button", id: "pause", onclick: () => give(paused ? "resume" : "pause") }, paused ? "Resume" : "Pause"),
    el("button", { type: "button", class: "danger", id: "stop", onclick: stop }, "Stop"),
  ] : []);
}

// -- commands --

async function give(name, fields) {
  try {
    const done = await command(name, fields);
    toast(done.text);
    return true;
  } catch (error) {
    toast(error.message, true);
    return false;
  }
}

async function stop() {
  if (await ask("Stop the crawl?", "Requests in flight are finished, then the crawl and this page end. It can be continued later: gossamer resume.", "Stop")) give("stop");
}

function toast(text, isBad = false) {
  const note = el("div", { class: isBad ? "toast bad" : "toast" }, el("p", {}, text),
    isBad ? el("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => note.remove() }, "×") : null);
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), isBad ? 12000 : 6000);
}

function ask(title, text, action) {
  return new Promise((resolve) => {
    const box = el("dialog", { "aria-labelledby": "ask-title" }, el("form", { method: "dialog" },
      el("h2", { id: "ask-title" }, title), el("p", {}, text),
      el("div", { class: "row" }, el("button", { value: "yes", class: "primary", id: "confirm" }, action), el("button", { value: "no" }, "Cancel"))));
    box.addEventListener("close", () => {
      resolve(box.returnValue === "yes");
      box.remove();
    });
    document.body.append(box);
    box.showModal();
  });
}

// -- keys, light and dark --

function help() {
  const keys = [["/", "search in this view"], ["1 … 9", "go to a view"], ["p", "pause or resume the crawl"], ["t", "light or dark"], ["?", "this help"], ["Esc", "close"]];
  const box = el("dialog", { "aria-labelledby": "help-title" }, el("form", { method: "dialog" },
    el("h2", { id: "help-title" }, "Keys"),
    el("table", {}, el("tbody", {}, keys.map(([key, text]) => el("tr", {}, el("td", {}, el("kbd", {}, key)), el("td", {}, text))))),
    el("p", { class: "soft" }, "Everything here can also be done by verbs and over the API, which /api/openapi.json describes."),
    el("div", {}, el("button", { class: "primary" }, "Close"))));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

function theme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    // storage is switched off: the choice lasts as long as the page
  }
}

function key(event) {
  const typing = event.target.closest("input, textarea, select, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") main.querySelector("input[type=search]")?.focus();
  else if (event.key === "?") help();
  else if (event.key === "t") theme();
  else if (event.key === "p") document.getElementById("pause")?.click();
  else if (/^[1-9]$/.test(event.key)) location.hash = `#/${VIEWS[Number(event.key) - 1][0]}`;
  else return;
  event.preventDefault();
}

try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // likewise
}
document.getElementById("theme").addEventListener("click", theme);
document.getElementById("help").addEventListener("click", help);
document.addEventListener("keydown", key);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", route);
drawViews();
route();
get("/api/status").then((status) => app.status ?? receive(status), () => {});  // the stream brings the next ones
connect({ show: "none" });
