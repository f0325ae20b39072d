// Lines over time on a canvas, with values as text below them; a click goes to that point in time.

import { duration, element, missing, tick } from "./words.js";

const EDGE = { left: 52, right: 10, top: 8, bottom: 20 };
const colours = new Map(); // to ask for one makes the browser lay out the page
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => colours.clear());

export function colour(name) {
  if (!colours.has(name)) {
    const styles = getComputedStyle(document.documentElement);
    colours.set(name, styles.getPropertyValue(`--${name}`).trim());
  }
  return colours.get(name);
}

// A canvas of the size that it is shown in, cleared, for drawing in CSS pixels.
export function prepared(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
  if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px system-ui, sans-serif";
  return { pen, width, height };
}

// Three to six round numbers from nothing to the most.
export function ticks(most) {
  const raw = (most || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= raw);
  return Array.from({ length: Math.ceil(most / step - 0.01) + 1 }, (_, number) => number * step);
}

export function nearest(times, time) {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low > 0 && time - times[low - 1] < times[low] - time ? low - 1 : low;
}

// Charts, each with what it shows. All are measured before any is drawn: to measure after a change makes the browser
// lay out the page, once for each chart.
export function showAll(shown) {
  for (const [chart, ...given] of shown) chart.set(...given);
  for (const [chart] of shown) chart.measure();
  for (const [chart] of shown) chart.draw();
}

export class Chart {
  // `lines`: name, label, colour, and perhaps `step`, `dash`, `band` (names of the least and the most), and `aside`
  // for one that may be out of sight. `format`: `value`, perhaps `axis`, and `ifKnown` for one that not every run has.
  constructor(place, title, lines, format, picked) {
    this.lines = lines;
    this.format = format;
    this.canvas = element("canvas", { role: "img" });
    this.told = lines.map(({ name, colour: of }) => {
      const key = element("span", { class: "key" });
      key.style.background = `var(--${of})`;
      const text = document.createTextNode("");
      return { text, item: element("li", { "data-line": name }, key, text) };
    });
    this.legend = element("ul", { "aria-label": `${title} at this point in time` }, ...this.told.map(({ item }) => item));
    this.panel = element("section", { class: "panel chart" }, element("h2", {}, title), this.canvas, this.legend);
    place.append(this.panel);
    this.title = title;
    this.times = [];
    this.cursor = null;
    this.ahead = [];
    this.size = { width: 0, height: 0 };
    this.canvas.addEventListener("click", (event) => this.times.length && picked(this.#index(event.offsetX)));
  }

  set(times, mean, most, cursor, ahead = []) {
    Object.assign(this, { times, mean, most, cursor, ahead });
    this.panel.hidden = Boolean(this.format.ifKnown) && !this.lines.some(({ name }) => mean[name]?.some((one) => !missing(one)));
  }

  measure() {
    this.size = { width: this.canvas.clientWidth, height: this.canvas.clientHeight || 190 };
  }

  draw() {
    this.#tell();
    if (!this.times.length || !this.size.width) return;
    const sheet = prepared(this.canvas, this.size.width, this.size.height);
    this.#scale(sheet);
    this.#axes(sheet);
    sheet.pen.save();
    sheet.pen.beginPath();
    sheet.pen.rect(EDGE.left, EDGE.top - 2, sheet.width - EDGE.left, sheet.height - EDGE.top - EDGE.bottom + 4);
    sheet.pen.clip();
    for (const line of this.lines) this.#line(sheet.pen, line);
    this.#expect(sheet.pen);
    sheet.pen.restore();
    this.#mark(sheet);
  }

  #scale({ width, height }) {
    let top = 0;
    const look = (values) => {
      for (const value of values || []) if (value > top) top = value;
    };
    for (const { name, band, aside } of this.lines) {
      if (aside) continue;
      look(this.mean[name]);
      if (!band) look(this.most[name]); // a band may be far off, and is cut
    }
    look([Math.min(1.5 * top, Math.max(0, ...this.ahead.map(([, value]) => value)))]); // no further: it is cut
    this.ticks = ticks(top || 1);
    const last = Math.max(this.times.at(-1), ...this.ahead.map(([time]) => time));
    const first = Math.min(0, this.times[0]);
    const inner = { width: width - EDGE.left - EDGE.right, height: height - EDGE.top - EDGE.bottom };
    const [across, down, bottom] = [inner.width / (last - first || 1), inner.height / this.ticks.at(-1), EDGE.top + inner.height];
    this.x = (time) => EDGE.left + (time - first) * across;
    this.y = (value) => bottom - value * down;
    this.time = (x) => first + ((x - EDGE.left) / inner.width) * (last - first);
    this.end = last;
  }

  #axes({ pen, width, height }) {
    pen.strokeStyle = colour("line");
    pen.fillStyle = colour("soft");
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of this.ticks) {
      pen.beginPath();
      pen.moveTo(EDGE.left, this.y(value));
      pen.lineTo(width - EDGE.right, this.y(value));
      pen.stroke();
      pen.fillText(this.format.axis ? this.format.axis(value) : tick(value), EDGE.left - 6, this.y(value));
    }
    pen.textBaseline = "bottom";
    const shares = width < 420 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
    for (const share of shares) {
      pen.textAlign = share === 0 ? "left" : share === 1 ? "right" : "center";
      pen.fillText(duration(share * this.end), this.x(share * this.end), height - 2);
    }
  }

  #line(pen, line) {
    const values = this.mean[line.name];
    if (!values) return;
    const [low, high] = line.band ? line.band.map((one) => this.mean[one]) : [values, this.most[line.name]];
    if (high) this.#area(pen, line, low, high);
    pen.strokeStyle = colour(line.colour);
    pen.lineWidth = 1.7;
    pen.setLineDash(line.dash || []);
    pen.beginPath();
    let open = false;
    values.forEach((value, index) => {
      if (missing(value)) open = false;
      else {
        const x = this.x(this.times[index]);
        if (!open) pen.moveTo(x, this.y(value));
        else if (line.step) pen.lineTo(x, this.y(values[index - 1]));
        if (open) pen.lineTo(x, this.y(value));
        open = true;
      }
    });
    pen.stroke();
    if (values.length === 1 && open) pen.fillRect(this.x(this.times[0]) - 2, this.y(values[0]) - 2, 4, 4);
    pen.setLineDash([]);
  }

  #area(pen, line, low, high) {
    pen.fillStyle = colour(line.colour);
    pen.globalAlpha = 0.2;
    const along = (values, index) => {
      if (!missing(low[index]) && !missing(high[index])) pen.lineTo(this.x(this.times[index]), this.y(values[index]));
    };
    pen.beginPath();
    for (let index = 0; index < high.length; index += 1) along(high, index);
    for (let index = high.length - 1; index >= 0; index -= 1) along(low, index);
    pen.fill();
    pen.globalAlpha = 1;
  }

  #expect(pen) {
    if (!this.ahead.length) return;
    pen.strokeStyle = colour("purple");
    pen.lineWidth = 2;
    pen.setLineDash([2, 3]);
    pen.beginPath();
    for (const [time, value] of this.ahead) pen.lineTo(this.x(time), this.y(value));
    pen.stroke();
    pen.setLineDash([]);
  }

  #mark({ pen, height }) {
    if (this.cursor === null) return;
    pen.strokeStyle = colour("ink");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(this.x(this.cursor), EDGE.top);
    pen.lineTo(this.x(this.cursor), height - EDGE.bottom);
    pen.stroke();
  }

  #index(x) {
    return nearest(this.times, this.time(x));
  }

  #tell() {
    const index = this.times.length ? nearest(this.times, this.cursor ?? this.times.at(-1)) : 0;
    const told = this.lines.map(({ name, label }) => `${label} ${this.format.value(this.mean[name]?.[index])}`);
    told.forEach((text, place) => {
      if (this.told[place].text.data !== text) this.told[place].text.data = text;
    });
    this.canvas.setAttribute("aria-label", `${this.title}: ${told.join(", ")}`);
  }
}
