// What is read more than once: a list a part at a time, and a view as the crawl goes on.

import { el, put } from "./dom.js";

// read(cursor) resolves to { rows, cursor, note }; draw(rows) returns an element; empty is a sentence.
export class Growing {
  constructor(read, draw, empty) {
    this.read = read;
    this.draw = draw;
    this.empty = empty;
    this.element = el("div", {});
    this.turn = 0;
  }

  // Begins anew; what an earlier question still brings is ignored.
  async begin() {
    this.rows = [];
    this.cursor = "";
    this.turn += 1;
    this.element.setAttribute("aria-busy", "true");
    await this.next();
  }

  async next() {
    const turn = this.turn;
    try {
      const found = await this.read(this.cursor);
      if (turn !== this.turn) return;
      this.rows.push(...found.rows);
      this.cursor = found.cursor;
      this.show(found.note);
    } catch (error) {
      if (turn === this.turn) put(this.element, el("p", { class: "empty" }, error.message));
    }
    this.element.removeAttribute("aria-busy");
  }

  show(note) {
    const more = this.cursor ? el("button", { type: "button", onclick: () => this.next() }, this.rows.length ? "Show more" : "Search further") : null;
    const nothing = typeof this.empty === "function" ? this.empty() : this.empty;
    put(this.element,
      this.rows.length ? this.draw(this.rows) : el("p", { class: "empty" }, this.cursor ? "Nothing so far." : nothing),
      more || note ? el("p", { class: "more" }, more, note ? el("span", {}, note) : null) : null);
  }
}

// Calls a function when nothing was typed for a moment.
export function calm(call, wait = 250) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), wait);
  };
}

// Reads now, again while the crawl runs, and once more when it has ended: every 3 s, or less often if it takes long.
// Returns the function that reads at once.
export function renewed(app, read) {
  let due = 0;
  let isReading = false;
  let isLast = app.status?.is_running === false;
  const again = async () => {
    const begun = Date.now();
    isReading = true;
    await read();
    isReading = false;
    due = Date.now() + Math.max(3000, 20 * (Date.now() - begun));
  };
  app.listeners.add((status) => {
    if (isReading || (status.is_running ? Date.now() < due : isLast)) return;
    isLast = !status.is_running;
    again();
  });
  again();
  return again;
}
