// Makes elements. Text from the web only ever becomes a text node: nothing here parses HTML. What changes the direction of
// the text around it is shown as an escape, as on a terminal.

const SVG = "http://www.w3.org/2000/svg";
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function legible(child) {
  if (typeof child !== "string") return child;
  return child.replace(TURNING, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function present(children) {
  return children.flat(3).filter((child) => child !== null && child !== undefined && child !== false && child !== "").map(legible);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...present(children));
  return node;
}

export function el(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

export function put(node, ...children) {
  node.replaceChildren(...present(children));
  return node;
}

export function card(title, ...children) {
  return el("section", { class: "card" }, title ? el("h2", {}, title) : null, children);
}

export function facts(rows) {
  const shown = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", { class: "facts" }, shown.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

// Columns: { name, number, wide, cell(row) }. Rows may have a class by `rowClass`.
export function table(caption, columns, rows, options = {}) {
  const head = columns.map((column) => {
    const cls = [column.number ? "n" : "", column.fit ? "fit" : "", column.wide ? "wide" : ""].join(" ").trim();
    const sorted = column.sort && column.sort === options.sort;
    const inside = column.sort
      ? el("button", { type: "button", onclick: () => options.onsort(column.sort) }, column.name)
      : column.name;
    const direction = column.sort === "name" ? "ascending" : "descending";
    return el("th", { scope: "col", class: cls || undefined, "aria-sort": sorted ? direction : undefined }, inside);
  });
  const body = rows.map((row) =>
    el("tr", { class: options.rowClass?.(row) || undefined }, columns.map((column) =>
      el("td", { class: [column.cls ?? "", column.number ? "n" : "", column.fit ? "fit" : "", column.wide ? "wide" : ""].join(" ").trim() || undefined },
        column.cell(row)))));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: options.cls }, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

// -- formats --

export const count = (number) => Math.round(number ?? 0).toLocaleString("en");
export const percent = (share) => (share ?? null) === null ? "–" : `${(100 * share).toFixed(1)} %`;

export function rate(number) {
  if ((number ?? null) === null) return "–";
  return number >= 100 ? count(number) : number.toFixed(1);
}

export function size(bytes) {
  let rest = bytes || 0;
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (rest < 1000 || unit === "TB") return unit === "B" ? `${Math.round(rest)} B` : `${rest.toFixed(1)} ${unit}`;
    rest /= 1000;
  }
  return "";
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "unknown";
  if (seconds < 1) return `${Math.round(1000 * seconds)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days ${hours % 24} h`;
}

export function moment(seconds) {
  if (!seconds) return "never";
  const date = new Date(seconds * 1000);
  const sameDay = date.toDateString() === new Date().toDateString();
  const two = (number) => String(number).padStart(2, "0");
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return sameDay ? clock : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`;
}

export const words = (name) => String(name ?? "").replaceAll("_", " ");

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

export function whyLink(url, text) {
  return el("a", { href: `#/why/${encodeURIComponent(url)}` }, text ?? url);
}

// By its id: also if what is shown of the URL is masked.
export function whyIdLink(one) {
  return el("a", { href: `#/why/id:${one.id}` }, one.url);
}

export function hostLink(name) {
  return el("a", { href: `#/hosts/${encodeURIComponent(name)}` }, name);
}
