// Charts in SVG, drawn here: a line over time, a bar of parts, a meter.

import { duration, el, moment, put, svg } from "./dom.js";

const WIDTH = 600;
const HEIGHT = 112;
const LEFT = 4;
const TOP = 6;
const BOTTOM = 4;

// The next round number: at most a quarter of the height stays empty.
const STEPS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return STEPS.map((step) => step * power).find((step) => step >= value * 0.999);
}

// A time of day, or of a crawl that has ended how long it had been running.
const FIRST_CLOCK = 1e9;

function timeOf(t) {
  if (t >= FIRST_CLOCK) return moment(t);
  return t < 60 ? `${Math.round(t)} s` : duration(t);
}

// The rows in runs without a gap: a row whose value is null belongs to none.
function runs(rows, place) {
  const found = [[]];
  for (const row of rows) {
    if (row.values[place] !== null) found[found.length - 1].push(row);
    else if (found[found.length - 1].length) found.push([]);
  }
  return found.filter((run) => run.length > 1);
}

export class LineChart {
  // series: [{ name, key }]; format: how a value is written; span: how the time axis is written.
  constructor(title, series, format, span) {
    this.title = title;
    this.series = series;
    this.format = format;
    this.span = span;
    this.value = el("span", { class: "value" });
    this.note = el("span", { class: "soft small" });
    this.plot = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": title });
    this.plot.addEventListener("pointermove", (event) => this.point(event));
    this.plot.addEventListener("pointerleave", () => this.show(this.rows.length - 1));
    this.rows = [];
    // The picture is stretched to its card, which texts in it would be, too: they stand beside it.
    [this.top, this.middle, this.bottom, this.from, this.to] = Array.from({ length: 5 }, () => el("span", {}));
    this.element = el("section", { class: "card chart" },
      el("div", { class: "card-head" }, el("h2", {}, title), this.note), el("div", {}, this.value),
      el("div", { class: "plot" }, el("div", { class: "ticks y" }, this.top, this.middle, this.bottom), this.plot,
        el("div", { class: "ticks x" }, this.from, this.to)));
  }

  label(top) {
    const some = this.rows.length > 1;
    this.top.textContent = some ? this.format(top) : "";
    this.middle.textContent = some ? this.format(top / 2) : "";
    this.bottom.textContent = some ? this.format(0) : "";
    this.from.textContent = some ? timeOf(this.rows[0].t) : "";
    this.to.textContent = some ? timeOf(this.rows[this.rows.length - 1].t) : "";
  }

  // rows: [{ t, values: [number or null, …] }] in order of time; null is a gap
  // resting: what is written while nothing is pointed at, instead of the last value
  draw(rows, resting = "") {
    this.rows = rows;
    this.resting = resting;
    const top = ceiling(Math.max(0, ...rows.flatMap((row) => row.values)));
    const first = rows.length ? rows[0].t : 0;
    const seconds = rows.length > 1 ? rows[rows.length - 1].t - first : 1;
    const x = (t) => LEFT + ((t - first) / (seconds || 1)) * (WIDTH - 2 * LEFT);
    const y = (value) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
    const lines = this.series.flatMap((one, place) => runs(rows, place).map((run) => {
      const points = run.map((row) => `${x(row.t).toFixed(1)},${y(row.values[place]).toFixed(1)}`);
      const base = HEIGHT - BOTTOM;
      const area = `M${x(run[0].t).toFixed(1)},${base}L${points.join("L")}L${x(run[run.length - 1].t).toFixed(1)},${base}Z`;
      return [svg("path", { class: `area ${one.key}`, d: area }), svg("path", { class: `line ${one.key}`, d: `M${points.join("L")}`, fill: "none" })];
    }));
    this.cursor = svg("line", { class: "axis", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    put(this.plot,
      svg("line", { class: "axis", x1: LEFT, x2: WIDTH - LEFT, y1: y(0), y2: y(0) }),
      svg("line", { class: "axis", x1: LEFT, x2: WIDTH - LEFT, y1: y(top / 2), y2: y(top / 2) }),
      svg("line", { class: "axis", x1: LEFT, x2: WIDTH - LEFT, y1: y(top), y2: y(top) }), ...lines.flat(), this.cursor);
    this.label(top);
    this.note.textContent = rows.length > 1 ? `${this.span(seconds)}, up to ${this.format(top)}` : "no data yet";
    this.x = x;
    this.show(rows.length - 1);
  }

  show(place) {
    const row = this.rows[place];
    if (!row) {
      this.value.textContent = "–";
      return;
    }
    const isLast = place === this.rows.length - 1;
    const several = this.series.length > 1;
    const written = (value) => (value === null ? "–" : this.format(value));
    this.value.textContent = isLast && this.resting ? this.resting : row.values.map((value, number) => (several ? `${this.series[number].name} ${written(value)}` : written(value))).join(" · ");
    this.cursor.setAttribute("visibility", isLast ? "hidden" : "visible");
    this.cursor.setAttribute("x1", this.x(row.t));
    this.cursor.setAttribute("x2", this.x(row.t));
  }

  point(event) {
    if (this.rows.length < 2) return;
    const box = this.plot.getBoundingClientRect();
    const wanted = ((event.clientX - box.left) / box.width) * WIDTH;
    let best = 0;
    this.rows.forEach((row, place) => {
      if (Math.abs(this.x(row.t) - wanted) < Math.abs(this.x(this.rows[best].t) - wanted)) best = place;
    });
    this.show(best);
  }
}

// A bar of parts with its legend. parts: [{ name, number, key }]
export function partsBar(label, parts, format) {
  const total = parts.reduce((sum, part) => sum + part.number, 0);
  let start = 0;
  const pieces = parts.map((part) => {
    const width = total ? (100 * part.number) / total : 0;
    const piece = svg("rect", { class: part.key, x: start, y: 0, width, height: 12 });
    start += width;
    return piece;
  });
  const said = parts.map((part) => `${part.name} ${format(part.number)}`).join(", ");
  return [
    el("div", { class: "bar" }, svg("svg", { viewBox: "0 0 100 12", preserveAspectRatio: "none", role: "img", "aria-label": `${label}: ${said}` }, pieces)),
    el("ul", { class: "legend" }, parts.filter((part) => part.number).map((part) =>
      el("li", {}, svg("svg", { viewBox: "0 0 9 9", "aria-hidden": "true" }, svg("circle", { class: part.key, cx: 4.5, cy: 4.5, r: 4, stroke: "none" })),
        `${part.name} `, el("b", {}, format(part.number))))),
  ];
}

export function meter(share, key = "k1") {
  const width = Math.max(0, Math.min(100, 100 * (share || 0)));
  return svg("svg", { class: "meter", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: key, x: 0, y: 0, width, height: 6 }));
}
