// Two runs side by side: what they came to, and both over time.

import { Chart, showAll } from "./chart.js";
import { count, duration, element, fail, instant, milliseconds, missing, rate, read } from "./words.js";

const given = new URLSearchParams(location.search);
const percent = (value) => (missing(value) ? "–" : `${value.toFixed(2)} %`);
const SIDES = [{ side: "a", colour: "blue" }, { side: "b", colour: "orange" }];
const CHARTS = [
  ["Entered", "entered", { value: rate }],
  ["Replicas", "replicas", { value: count }, true],
  ["Backlog", "backlog", { value: count }],
  ["Late share", "late_percent", { value: percent, axis: (value) => `${count(value)} %` }],
  ["Latency p99", "p99_ms", { value: milliseconds, axis: milliseconds }],
  ["Dropped", "dropped", { value: rate }],
];
// What it is called, how it is shown, and whether less of it is better.
const TOTALS = {
  seconds: ["lasted", duration],
  events: ["events entered", count],
  late_percent: ["late events", percent, true],
  promised_percent: ["late events, promised", percent],
  target_ms: ["late after", milliseconds],
  replica_seconds: ["replica-seconds", count, true],
  most_replicas: ["most replicas", count],
  most_backlog: ["most backlog", count, true],
  mean_ms: ["latency, mean", milliseconds, true],
  worst_p99_ms: ["latency, worst p99 of an interval", milliseconds, true],
  dropped: ["dropped", count, true],
  changes: ["changes of replicas", count, true],
  orders: ["orders", count],
  faults: ["faults", count, true],
  stood_still_s: ["stood still", duration, true],
};

const td = (text, kind = "number") => element("td", { class: kind }, text);

function head(runs) {
  const links = runs.map((run, place) => {
    const key = element("span", { class: "key" });
    key.style.background = `var(--${SIDES[place].colour})`;
    return element("th", { class: "number run", scope: "col" }, key, element("a", { href: `/run/${encodeURIComponent(run.run)}` }, run.run));
  });
  return element("thead", {}, element("tr", {}, element("th"), ...links));
}

function ratio(a, b) {
  if (missing(a) || missing(b) || a <= 0 || a === b) return "";
  return b / a >= 10 ? `× ${count(b / a)}` : `${b > a ? "+" : "−"}${Math.abs(100 * (b / a - 1)).toFixed(1)} %`;
}

function totals(runs, [a, b]) {
  const rows = Object.entries(TOTALS).map(([key, [label, show, less]]) => {
    const row = element("tr", { "data-total": key }, element("th", { scope: "row" }, label), td(show(a[key])), td(show(b[key])));
    const side = less && !missing(a[key]) && !missing(b[key]) && a[key] !== b[key] ? (a[key] < b[key] ? 1 : 2) : 0;
    if (side) row.children[side].classList.add("better");
    row.append(td(ratio(a[key], b[key])));
    return row;
  });
  const top = head(runs);
  top.firstChild.append(element("th", { class: "number", scope: "col" }, "second"));
  document.getElementById("totals").replaceChildren(top, element("tbody", {}, ...rows));
}

function settings(runs) {
  const facts = runs.map(({ topology, policy, td_s: length, started_at: at, settings: more }) =>
    ({ topology, policy, td: duration(length), started: instant(at), ...more }));
  const keys = [...new Set(facts.flatMap(Object.keys))];
  const rows = keys.map((key) => {
    const values = facts.map((one) => String(one[key] ?? "–"));
    const kind = key !== "started" && values[0] !== values[1] ? "number differs" : "number";
    return element("tr", {}, element("th", { scope: "row" }, key), ...values.map((one) => td(one, kind)));
  });
  document.getElementById("settings").replaceChildren(head(runs), element("tbody", {}, ...rows));
}

function charts({ runs, times_s: times, sides }) {
  const place = document.getElementById("charts");
  const made = CHARTS.map(([title, key, format, step]) => {
    const lines = SIDES.map(({ side, colour }, index) => ({ name: side, label: runs[index].policy, colour, step }));
    const chart = new Chart(place, title, lines, format, (index) => show(times[index]));
    return { chart, values: { a: sides[0][key], b: sides[1][key] } };
  });
  let shown = times.at(-1) ?? null;
  function show(time) {
    shown = time;
    showAll(made.map(({ chart, values }) => [chart, times, values, {}, time]));
  }
  show(shown);
  addEventListener("resize", () => show(shown));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(shown));
}

try {
  const [a, b] = ["a", "b"].map((side) => encodeURIComponent(given.get(side) ?? ""));
  const found = await read(`/api/compare?a=${a}&b=${b}`);
  totals(found.runs, found.totals);
  settings(found.runs);
  charts(found);
} catch (error) {
  fail(error);
}
document.body.dataset.ready = "yes";
