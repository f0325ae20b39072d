// The topology as a graph: a box for each source and operator, coloured by trouble.

import { count, duration, milliseconds, percent, rate, short } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 212, height: 126 };
const GAP = { x: 32, y: 14 };
const NARROW = 640;
const ARCS = 34; // room for edges beside the boxes, where these stand below each other

function svg(name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

// Sources are at level 0, an operator one above its deepest predecessor.
export function levels(moment) {
  const before = new Map(moment.operators.map((one) => [one.operator, Object.keys(one.received_by)]));
  for (const one of moment.sources) before.set(one.name, []);
  for (const names of [...before.values()]) for (const name of names) if (!before.has(name)) before.set(name, []);
  const found = new Map();
  const level = (name, path) => {
    if (found.has(name)) return found.get(name);
    if (path.has(name)) return 0;
    const deepest = Math.max(-1, ...before.get(name).map((one) => level(one, new Set([...path, name]))));
    found.set(name, deepest + 1);
    return deepest + 1;
  };
  for (const name of before.keys()) level(name, new Set());
  return { before, found };
}

export function inOrder(moment) {
  const { found } = levels(moment);
  const names = moment.operators.map((one) => one.operator);
  return names.sort((a, b) => found.get(a) - found.get(b) || a.localeCompare(b));
}

function places(found, width) {
  const columns = [];
  for (const [name, level] of [...found].sort()) (columns[level] ||= []).push(name);
  if (width < NARROW) {
    const all = columns.flat();
    const at = new Map(all.map((name, row) => [name, { x: ARCS, y: row * (BOX.height + GAP.y) + 2 }]));
    return { at, width, height: all.length * (BOX.height + GAP.y), box: Math.max(BOX.width, width - ARCS - 4) };
  }
  const tallest = Math.max(...columns.map((one) => one.length));
  const height = tallest * (BOX.height + GAP.y);
  const room = (width - 4 - columns.length * BOX.width) / Math.max(1, columns.length - 1);
  const gap = Math.min(110, Math.max(GAP.x, room));
  const at = new Map();
  columns.forEach((names, column) => {
    const top = (height - names.length * (BOX.height + GAP.y)) / 2;
    names.forEach((name, row) => {
      at.set(name, { x: 2 + column * (BOX.width + gap), y: top + row * (BOX.height + GAP.y) + 2 });
    });
  });
  return { at, width: columns.length * (BOX.width + gap) - gap + 4, height, box: BOX.width };
}

function edge(from, to, narrow, box) {
  const middle = BOX.height / 2;
  let path;
  if (narrow) {
    const [top, bottom] = [from.y + middle + 8, to.y + middle - 8];
    const out = ARCS - Math.min(ARCS - 4, 12 + Math.abs(bottom - top) / 24);
    path = `M${ARCS},${top} C${out},${top} ${out},${bottom} ${ARCS},${bottom}`;
  } else {
    const [x, y, u, v] = [from.x + box, from.y + middle, to.x, to.y + middle];
    path = `M${x},${y} C${x + 30},${y} ${u - 30},${v} ${u},${v}`;
  }
  return svg("path", { class: "edge", d: path });
}

// Where the backlog waits, as far as that is known; the rest is on its way.
function where(one) {
  const places = ["held", "booked", "outside"].filter((name) => one[name]);
  if (places.length) return places.map((name) => `${name} ${short(one[name])}`).join(" · ");
  return one.backlog ? "on its way" : "nothing waits";
}

// Not measured: what its backlog takes, and its execution time.
const latency = (one) => milliseconds(one.latency_s === null ? null : 1000 * one.latency_s);

// The texts of an operator's box: where, what, and how they look.
function lines(one, box) {
  const right = { "text-anchor": "end" };
  const mark = { calm: "", warning: "! ", bad: "‼ " }[one.trouble.level];
  const et = one.execution_time_s === null ? null : 1000 * one.execution_time_s;
  const waits = one.waiting_s === null ? "stands still" : `≈ ${duration(one.waiting_s)}`;
  return [
    [14, 21, mark + one.operator, { class: "name" }],
    [box - 10, 21, `${one.replicas}/${one.pool}`, { ...right, class: "name" }],
    [14, 41, `${rate(one.received_rate)} → ${rate(one.processed_rate)}`, {}],
    [box - 10, 41, `et ${milliseconds(et)}`, right],
    [14, 60, `backlog ${count(one.backlog)}`, {}],
    [box - 10, 60, one.backlog ? waits : "", right],
    [14, 78, where(one), { class: "soft" }],
    [14, 96, `latency ≈ ${latency(one)}, estimated`, { class: "soft" }],
    [box - 10, 116, `busy ${percent(one.busy_share)}`, right],
  ];
}

const busyWidth = (one, box) => (Math.min(1, Math.max(0, one.busy_share)) * (box - 108)).toFixed(1);

function sourceLines(name, source) {
  const next = source?.expected?.[0];
  return [
    [14, 21, name, { class: "name" }],
    [14, 41, `source, ${rate(source?.rate)}`, {}],
    [14, 60, next === undefined ? "" : `expected next ${rate(next)}`, { class: "soft" }],
  ];
}

function describe(one) {
  const trouble = one.trouble.why.length ? one.trouble.why.join("; ") : "calm";
  return `${one.operator}: ${one.replicas} of ${one.pool} replicas, receives ${rate(one.received_rate)}, ` +
    `processes ${rate(one.processed_rate)}, backlog ${count(one.backlog)}, latency about ${latency(one)} as estimated, busy ${percent(one.busy_share)}; ${trouble}`;
}

function box(name, place, width, operator) {
  const group = svg("g", { transform: `translate(${place.x},${place.y})`, "data-name": name });
  const height = BOX.height;
  group.append(svg("rect", { class: "box", width, height, rx: 7 }), svg("rect", { class: "side", width: 5, height, rx: 2.5 }));
  if (operator) {
    group.setAttribute("tabindex", 0);
    group.setAttribute("role", "button");
    group.append(svg("title"));
    group.append(svg("rect", { class: "trough", x: 14, y: 108, width: width - 108, height: 7, rx: 3.5 }));
    group.append(svg("rect", { class: "busy", x: 14, y: 108, width: 0, height: 7, rx: 3.5 }));
  }
  return group;
}

function set(item, key, value) {
  if (item.getAttribute(key) !== value) item.setAttribute(key, value);
}

function write(group, texts) {
  const there = group.querySelectorAll("text");
  texts.forEach(([x, y, text, extra], place) => {
    if (!there[place]) group.append(svg("text", { x, y, ...extra }, text));
    else if (there[place].textContent !== text) there[place].textContent = text;
  });
}

// The values of this moment, into a sheet that is there.
function fill(sheet, moment, width, chosen) {
  const operators = new Map(moment.operators.map((one) => [one.operator, one]));
  const sources = new Map(moment.sources.map((one) => [one.name, one]));
  for (const group of sheet.querySelectorAll("[data-name]")) {
    const { name } = group.dataset;
    const one = operators.get(name);
    set(group, "class", one ? one.trouble.level : "source");
    write(group, one ? lines(one, width) : sourceLines(name, sources.get(name)));
    if (!one) continue;
    const told = describe(one);
    set(group, "aria-pressed", String(name === chosen));
    set(group, "aria-label", told);
    if (group.querySelector("title").textContent !== told) group.querySelector("title").textContent = told;
    set(group.querySelector(".busy"), "width", busyWidth(one, width));
  }
  const busiest = Math.max(1, ...moment.operators.map((one) => one.received));
  for (const path of sheet.querySelectorAll(".edge")) {
    const share = (operators.get(path.dataset.to)?.received_by[path.dataset.from] ?? 0) / busiest;
    set(path, "stroke-width", (1.2 + 4 * share).toFixed(1));
  }
}

let drawn = { key: null, sheet: null, width: 0 };

export function draw(place, moment, chosen, picked) {
  const { before, found } = levels(moment);
  const key = JSON.stringify([place.clientWidth, [...before]]);
  if (drawn.key !== key) drawn = { key, ...sheetOf(place, before, found, moment, picked) };
  fill(drawn.sheet, moment, drawn.width, chosen);
}

function sheetOf(place, before, found, moment, picked) {
  const laid = places(found, place.clientWidth);
  const sheet = svg("svg", { class: "graph", width: laid.width, height: laid.height, role: "group", "aria-label": "Topology" });
  const narrow = place.clientWidth < NARROW;
  for (const [name, senders] of before) {
    for (const sender of senders) {
      const path = edge(laid.at.get(sender), laid.at.get(name), narrow, laid.box);
      Object.assign(path.dataset, { from: sender, to: name });
      sheet.append(path);
    }
  }
  const operators = new Map(moment.operators.map((one) => [one.operator, one]));
  for (const [name, at] of laid.at) sheet.append(box(name, at, laid.box, operators.get(name)));
  sheet.addEventListener("click", (event) => choose(event.target, picked));
  sheet.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(event.target, picked);
  });
  place.replaceChildren(sheet);
  return { sheet, width: laid.box };
}

function choose(target, picked) {
  const found = target.closest('[role="button"]');
  if (found) picked(found.dataset.name);
}
