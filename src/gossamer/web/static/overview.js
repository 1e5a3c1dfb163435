// The crawl at a glance: how far, how fast, what holds it up, how long it will take.

import { get } from "./api.js";
import { LineChart, meter, partsBar } from "./chart.js";
import { card, count, duration, el, hostLink, moment, percent, plural, put, rate, size, table, words } from "./dom.js";

const MAX_SAMPLES = 600;
const SHOWN_S = 600;  // of before the dashboard was opened
// A crawl that runs knows what is in progress, its ledger what is swapped out or dead: hardly two of a colour are shown together.
const HOST_STATES = [
  ["ready", "k1"], ["busy", "k4"], ["at_limit", "k2"], ["waiting", "k3"], ["parked", "k5"], ["swapped_out", "k4"], ["idle", "k6"],
  ["over_budget", "k6"], ["blocked", "k2"], ["dead", "k2"],
];
const PHASES = ["dns", "connect", "tls", "first_byte", "body", "total"];
const BOUNDS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const BOUND_BY = {
  politeness: "Politeness", dns: "Name look-ups", connections: "Connections", cpu: "CPU", disk: "The disk",
  ledger: "The ledger", nothing_left: "Nothing is left to do", retries: "Waits before retries", paused: "A pause",
};
// Samples outlive the view, so that coming back shows the same lines.
const samples = [];
let history = null;
let wasRunning = false;  // since the dashboard was opened

// Of every status that comes, whichever view is shown.
export function sample(status) {
  if (wasRunning && !status.is_running) return;  // it has ended: what was seen of it stays
  wasRunning = status.is_running;
  const now = Date.now() / 1000;
  const last = samples[samples.length - 1];
  if (last && now - last.t < 0.4) return;
  const speed = status.figures.rates["10s"] ?? {};
  // A pause has no speed: it is a gap in the lines.
  const { pages, errors, bytes } = status.state === "paused" ? { pages: null, errors: null, bytes: null } : { pages: 0, errors: 0, bytes: 0, ...speed };
  samples.push({ t: now, pages, errors, bytes, queued: status.urls_queued });
  if (samples.length > MAX_SAMPLES) samples.shift();
}

function quantile(histogram, share) {
  const total = histogram.counts.reduce((sum, number) => sum + number, 0);
  let below = 0;
  for (let place = 0; place < histogram.counts.length; place++) {
    const number = histogram.counts[place];
    if (number && below + number >= share * total) {
      if (place === BOUNDS_S.length) break;
      const low = place ? BOUNDS_S[place - 1] : 0;
      return low + ((BOUNDS_S[place] - low) * (share * total - below)) / number;
    }
    below += number;
  }
  return total ? BOUNDS_S[BOUNDS_S.length - 1] : 0;
}

export function overview(main, app) {
  const tiles = el("dl", { class: "tiles" });
  const bound = el("section", { class: "card w4" });
  const forecast = el("section", { class: "card w4" });
  const warnings = el("section", { class: "card w4" });
  const charts = {
    pages: new LineChart("Pages per second", [{ name: "pages", key: "k1" }], rate, lasting),
    errors: new LineChart("Errors per second", [{ name: "errors", key: "k2" }], rate, lasting),
    bytes: new LineChart("Received per second", [{ name: "bytes", key: "k3" }], size, lasting),
    queued: new LineChart("URLs queued", [{ name: "queued", key: "k4" }], count, lasting),
  };
  const hosts = el("section", { class: "card w6 stack" });
  const answers = el("section", { class: "card w6 stack" });
  const latency = el("section", { class: "card w6" });
  const machine = el("section", { class: "card w6" });
  const nodes = el("section", { class: "card", hidden: true });
  for (const chart of Object.values(charts)) chart.element.classList.add("w6");
  const note = el("p", {});
  put(main, el("div", { class: "view-head" }, el("h1", {}, "Overview"), note), tiles,
    el("div", { class: "grid" }, bound, forecast, warnings), nodes,
    el("div", { class: "grid" }, charts.pages.element, charts.queued.element, charts.errors.element, charts.bytes.element, hosts, answers, latency, machine));

  function draw(status) {
    put(note, course(status));
    drawTiles(tiles, status);
    drawBound(bound, status);
    drawForecast(forecast, status);
    drawWarnings(warnings, status);
    drawCharts(charts, status);
    drawHosts(hosts, status.figures.hosts);
    drawAnswers(answers, status.figures.totals);
    drawLatency(latency, status.figures.latency);
    drawMachine(machine, status);
    drawNodes(nodes, status.nodes);
  }

  app.listeners.add(draw);
  if (!history) {
    get("/api/history").then((answer) => {
      history = answer.points;
      if (app.status && app.listeners.has(draw)) draw(app.status);
    }, () => {});
  }
}

function course(status) {
  if (!status.is_running) return `ended: ${status.reason}`;
  if (status.state !== "paused") return `running for ${duration(status.figures.run_seconds)}`;
  return status.figures.paused_seconds ? `paused for ${duration(status.figures.paused_seconds)}` : "paused";
}

function lasting(seconds) {
  return `${duration(Math.round(seconds))} shown`;
}

function tile(name, value, note) {
  return el("div", { class: "tile" }, el("dt", {}, name), el("dd", {}, value), el("dd", { class: "note", title: note }, note));
}

function drawTiles(into, status) {
  const figures = status.figures;
  const limit = figures.max_pages ? `of at most ${count(figures.max_pages)}` : `${percent(status.html_share)} HTML`;
  const speed = figures.rates["10s"]?.pages;
  put(into, [
    tile("Pages", count(status.pages), limit),
    status.is_running && status.state === "paused"
      ? tile("Pages per second", "paused", `${rate(figures.rates.run?.pages)} in this run`)
      : status.is_running && speed !== undefined
      ? tile("Pages per second", rate(speed), `${rate(figures.rates["1m"]?.pages)} in a minute, ${rate(figures.rates.run?.pages)} in this run`)
      : tile("Pages per second", rate(status.pages_per_second), `over ${duration(status.seconds)}`),
    tile("Errors", percent(status.error_rate), `${count(status.errors)} of ${plural(status.fetches, "fetch", "fetches")}`),
    tile("Queued", count(status.urls_queued), `${count(status.urls_seen)} known, ${count(status.urls_parked)} parked, ${count(status.urls_over_budget)} over budget`),
    tile("Hosts", count(status.hosts_known), `${count(status.unique_hosts)} with pages, of ${plural(status.unique_domains, "domain")}`),
    ...(status.visits ? [tile("Fetched again", count(status.visits.all), again(status))] : []),
    tile("Received", size(status.bytes), `${plural(status.duplicates + status.near_duplicates, "copy", "copies")} among the pages`),
    status.is_running
      ? tile("In flight", count(figures.in_flight), plural(status.dead, "dead letter"))
      : tile("Dead letters", count(status.dead), "failed for good"),
  ]);
}

function again(status) {
  if (!status.visits.all) return "how many copies are fresh is not known yet";
  const fresh = status.freshness === null ? "" : `, about ${percent(status.freshness)} of the copies fresh`;
  return `${count(status.visits.changed)} changed${fresh}`;
}

function drawBound(into, status) {
  const bound = status.figures.bound_by;
  put(into, el("h2", {}, "What the speed is bound by"));
  if (!status.is_running) return into.append(el("p", { class: "soft" }, "The crawl does not run."));
  if (!bound) return into.append(el("p", { class: "soft" }, "Not known yet: the crawl has just begun, or is read from outside."));
  into.append(el("p", {}, el("b", {}, BOUND_BY[bound.resource] ?? words(bound.resource))), el("p", { class: "soft break" }, bound.evidence));
}

function drawForecast(into, status) {
  const forecast = status.figures.forecast;
  put(into, el("h2", {}, "What is left"));
  const isPaused = status.state === "paused";
  if (!forecast?.text || isPaused) {
    const left = status.urls_queued ? `${plural(status.urls_queued, "URL")} queued` : "Nothing is queued";
    const due = status.figures.revisits && status.is_running ? " Known pages are fetched again when they are due." : "";
    into.append(el("p", { class: "soft" }, isPaused ? `${left}. The crawl is paused.` : `${left}.${due}`));
  } else into.append(el("p", { class: "break" }, status.is_running ? forecast.text : `Once it is resumed: ${forecast.text}`));
  if (status.left_out.length) into.append(el("ul", { class: "plain small", id: "left-out" }, status.left_out.map((text) => el("li", { class: "break" }, text))));
  if (forecast?.slow_hosts.length && !isPaused) {
    into.append(el("ul", { class: "plain small" }, forecast.slow_hosts.slice(0, 3).map((host) =>
      el("li", { class: "break" }, hostLink(host.name), ` ${duration(host.seconds)} for ${plural(host.queued, "URL")}, one per ${duration(host.delay_s)}`))));
  }
}

function drawWarnings(into, status) {
  const shown = [...status.figures.warnings].sort((a, b) => b.is_lasting - a.is_lasting || b.since - a.since);
  put(into, el("h2", {}, "Warnings"));
  if (!shown.length) return into.append(el("p", { class: "soft" }, "None."));
  into.append(el("ul", { class: "plain" }, shown.slice(0, 5).map((warning) =>
    el("li", { class: "break" }, el("span", { class: warning.is_lasting && status.is_running ? "tag warn" : "tag" }, warning.is_lasting && status.is_running ? "now" : moment(warning.since)), " ", warning.text))));
  if (shown.length > 5) into.append(el("p", { class: "soft small" }, `and ${shown.length - 5} more`));
}

function drawCharts(charts, status) {
  if (!wasRunning && history?.length > 1) {
    const rows = (key) => history.map((point) => ({ t: point.t_s, values: [point[key]] }));
    charts.pages.draw(rows("pages_per_second"), `${rate(status.pages_per_second)} on average`);
    charts.errors.draw(rows("errors_per_second"), `${count(status.errors)} in all`);
    charts.queued.draw(rows("queued"), `${count(Math.max(...history.map((point) => point.queued)))} at most`);
    charts.bytes.element.hidden = history.every((point) => point.bytes_per_second === null);  // a report does not have them
    charts.bytes.draw(rows("bytes_per_second"), `${size(status.bytes)} in all`);
    return;
  }
  charts.bytes.element.hidden = false;
  const earlier = history ?? [];
  const end = earlier.length ? earlier[earlier.length - 1].t_s : 0;
  const start = samples.length ? samples[0].t : 0;
  const shown = earlier.map((point) => ({ ...point, t: start - 1 - (end - point.t_s) })).filter((point) => start - point.t < SHOWN_S);
  // What has ended, or is paused, has no speed now: not the last one that was seen.
  const line = (chart, before, now, total) => chart.draw(
    [...shown.map((point) => ({ t: point.t, values: [point[before]] })), ...samples.map((one) => ({ t: one.t, values: [one[now]] }))],
    !status.is_running ? total : status.state === "paused" ? "paused" : "");
  line(charts.pages, "pages_per_second", "pages", `${rate(status.pages_per_second)} on average`);
  line(charts.errors, "errors_per_second", "errors", `${count(status.errors)} in all`);
  line(charts.bytes, "bytes_per_second", "bytes", `${size(status.bytes)} in all`);
  charts.queued.draw([...shown.map((point) => ({ t: point.t, values: [point.queued] })), ...samples.map((one) => ({ t: one.t, values: [one.queued] }))]);
}

function drawHosts(into, hosts) {
  const parts = HOST_STATES.map(([name, key]) => ({ name: words(name), number: hosts[name] ?? 0, key }));
  const total = parts.reduce((sum, part) => sum + part.number, 0);
  put(into, el("div", { class: "card-head" }, el("h2", {}, "Hosts by state"), el("a", { href: "#/hosts" }, "all hosts")),
    total ? partsBar("Hosts by state", parts, count) : el("p", { class: "soft" }, "No host is known yet."));
}

function drawAnswers(into, totals) {
  const kinds = ["k1", "k3", "k5", "k2", "k4", "k6"];
  const sorted = Object.entries(totals.outcomes).sort((a, b) => b[1] - a[1]);
  const parts = sorted.slice(0, 5).map(([name, number], place) => ({ name: words(name), number, key: kinds[place] }));
  const rest = sorted.slice(5).reduce((sum, [, number]) => sum + number, 0);
  if (rest) parts.push({ name: "other", number: rest, key: "k6" });
  put(into, el("div", { class: "card-head" }, el("h2", {}, "How fetches ended"), el("a", { href: "#/dead" }, "dead letters")),
    parts.length ? partsBar("How fetches ended", parts, count) : el("p", { class: "soft" }, "Nothing was fetched yet."));
}

function drawLatency(into, latency) {
  const rows = PHASES.filter((phase) => latency[phase]?.counts.some(Boolean)).map((phase) => {
    const [p50, p90, p99] = [0.5, 0.9, 0.99].map((share) => quantile(latency[phase], share));
    return { phase, p50, p90, p99 };
  });
  put(into, el("h2", {}, "How long requests take"));
  if (!rows.length) return into.append(el("p", { class: "soft" }, "Not measured: this is known while a crawl runs."));
  const top = Math.max(...rows.map((row) => row.p99));
  into.append(table("How long requests take, by phase", [
    { name: "phase", cell: (row) => words(row.phase) },
    { name: "median", number: true, cell: (row) => duration(row.p50) },
    { name: "90 %", number: true, cell: (row) => duration(row.p90) },
    { name: "99 %", number: true, cell: (row) => duration(row.p99) },
    { name: "90 % of requests", wide: true, cell: (row) => meter(row.p90 / top, "k3") },
  ], rows));
}

function drawMachine(into, status) {
  const figures = status.figures;
  const share = (name) => (figures.core_share[name] === undefined ? null : percent(figures.core_share[name]));
  const rows = [
    ["memory", `${size(figures.private_bytes || status.peak_private_bytes)} private${figures.memory_ceiling_bytes ? ` of ${size(figures.memory_ceiling_bytes)}` : ""}`],
    ["CPU per page", `${status.cpu_ms_per_page.toFixed(2)} ms`],
    ["hub, worker", share("hub") ? `${share("hub")}${share("worker") ? `, ${share("worker")}` : ""} of a core` : null],
    ["commits", figures.commits ? `${count(figures.commits)}, median ${duration(quantile(figures.commit_time, 0.5))}, 99 % ${duration(quantile(figures.commit_time, 0.99))}` : null],
    ...status.rows,
    ["workers", figures.workers ? `${count(figures.workers)}${figures.worker_deaths ? `, ${plural(figures.worker_deaths, "death")}` : ""}` : null],
  ];
  const shown = rows.filter(([, text]) => text);
  put(into, el("h2", {}, "The machine"), el("dl", { class: "facts" }, shown.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)])));
}

function drawNodes(into, nodes) {
  into.hidden = !nodes.length;
  if (!nodes.length) return;
  put(into, el("h2", {}, "Nodes"), table("Nodes", [
    { name: "node", cell: (node) => node.name },
    { name: "state", cell: (node) => el("span", { class: node.is_live ? "tag good" : "tag" }, node.is_live ? "alive" : "gone") },
    { name: "pages", number: true, cell: (node) => count(node.pages) },
    { name: "queued", number: true, cell: (node) => count(node.queued) },
    { name: "in flight", number: true, cell: (node) => count(node.in_flight) },
    { name: "label", wide: true, cell: (node) => node.label },
  ], nodes));
}
