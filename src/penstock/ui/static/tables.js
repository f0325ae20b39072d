// The tables below the charts: decisions, orders, faults, workers, what managers said.

import { count, duration, element, instant, percent } from "./words.js";

const shown = new Map(); // what each table was filled from

// A table of the rows that `row` makes of `found`, unless it has them already.
function fill(id, heads, found, row, none) {
  const now = JSON.stringify(found);
  if (shown.get(id) === now) return;
  shown.set(id, now);
  const table = document.getElementById(id);
  const rows = found.map(row);
  if (!rows.length) {
    table.replaceChildren(element("tbody", {}, element("tr", {}, element("td", { class: "soft" }, none))));
    return;
  }
  const head = element("tr", {}, ...heads.map((one) => element("th", { scope: "col" }, one)));
  table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}

const cell = (text, kind = "") => element("td", kind ? { class: kind } : {}, text);
const tr = (...cells) => element("tr", {}, ...cells);

function decision(one) {
  const failed = one.failure ? [cell(`not carried out: ${one.failure}`, "failure")] : [];
  return tr(cell(count(one.number), "tight"), cell(one.operator), cell(`${one.before} → ${one.after}`, "tight"),
    cell(one.reason, "words"), ...failed);
}

function still(one) {
  const lasted = one.seconds === null ? "until the end" : duration(one.seconds);
  const [what, why] = one.cause === undefined ? ["pause", one.why] : ["fault", `${one.cause} (died ${count(one.deaths)} ×)`];
  return tr(cell(duration(one.time_s), "tight"), cell(what, "tight"), cell(lasted, "tight"), cell(why, "words"));
}

const worker = (one) => tr(cell(one.worker), cell(one.region), cell(one.state),
  cell(`${one.hosted} of ${one.capacity}`, "tight"), cell(percent(one.utilisation), "tight"));

const said = (one) => tr(cell(duration(one.time_s), "tight"), cell(one.who), cell(`${one.word} ${one.subject}`), cell(one.reason, "words"));

const order = (one) => tr(cell(duration(Math.max(0, one.time_s)), "tight"), cell(instant(one.given_at), "tight"), cell(one.who), cell(one.told, "words"));

export function tables(moment) {
  const stood = [...moment.faults, ...moment.pauses].sort((a, b) => b.time_s - a.time_s);
  fill("decisions", ["interval", "operator", "replicas", "why"], moment.decisions, decision, "no change in the last 1,000 intervals");
  fill("orders", ["time", "given", "by", "order"], moment.steering.orders, order, "none so far");
  fill("faults", ["time", "what", "events stood still", "why"], stood, still, "none so far");
  fill("workers", ["worker", "region", "state", "slots used", "utilisation"], moment.workers, worker, "this run has no workers that come and go");
  fill("managers", ["time", "manager", "said", "why"], moment.managers, said, "nothing so far");
}
