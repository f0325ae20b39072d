// Every operator's replicas over time, one below the other: a strip each, as high as the most of all.

import { colour, nearest, prepared } from "./chart.js";
import { element } from "./words.js";

const HEIGHT = 22;

export class Strips {
  constructor(place, picked) {
    this.canvas = element("canvas", { role: "img" });
    place.append(this.canvas);
    this.numbers = [];
    this.replicas = {};
    this.cursor = null;
    this.order = [];
    this.canvas.addEventListener("click", (event) => {
      const name = this.order[Math.floor(event.offsetY / HEIGHT)];
      if (name) picked(name);
    });
  }

  show(found, order) {
    Object.assign(this, { ...found, order });
    this.draw();
  }

  add(number, operators) {
    if (!this.numbers.length || number <= this.numbers.at(-1)) return;
    this.numbers.push(number);
    const now = Object.fromEntries(operators.map((one) => [one.operator, one.replicas]));
    for (const [name, values] of Object.entries(this.replicas)) values.push(now[name] ?? null);
  }

  at(number) {
    this.cursor = number;
    this.draw();
  }

  draw() {
    const { order, numbers, replicas } = this;
    const height = Math.max(1, order.length) * HEIGHT;
    if (this.canvas.style.height !== `${height}px`) this.canvas.style.height = `${height}px`;
    const width = this.canvas.clientWidth;
    if (!numbers.length || !width) return;
    const { pen } = prepared(this.canvas, width, height);
    const left = Math.min(130, width * 0.28);
    const [first, last] = [numbers[0], numbers.at(-1)];
    const x = (number) => left + ((number - first + 1) / (last - first + 1)) * (width - left - 34);
    const most = Math.max(1, ...order.map((name) => Math.max(...replicas[name].map((one) => one ?? 0))));
    const place = nearest(numbers, this.cursor ?? last);
    order.forEach((name, row) => {
      const bottom = (row + 1) * HEIGHT - 3;
      pen.fillStyle = colour("ink");
      pen.textBaseline = "alphabetic";
      pen.fillText(name, 0, bottom - 3, left - 8);
      pen.fillText(replicas[name][place] ?? "–", width - 28, bottom - 3);
      pen.fillStyle = colour("blue");
      let from = left;
      replicas[name].forEach((value, index) => {
        if (replicas[name][index + 1] === value) return; // as many go on
        const high = ((value ?? 0) / most) * (HEIGHT - 6);
        const to = x(numbers[index]);
        pen.fillRect(from, bottom - high, Math.max(1, to - from + 0.3), high);
        from = to;
      });
      pen.fillStyle = colour("line");
      pen.fillRect(0, bottom, width, 1);
    });
    pen.fillStyle = colour("ink");
    pen.fillRect(x(this.cursor ?? last), 0, 1, height);
    const told = order.map((name) => `${name} ${replicas[name][place] ?? "unknown"}`).join(", ");
    this.canvas.setAttribute("aria-label", `Replicas by operator: ${told}`);
  }
}
