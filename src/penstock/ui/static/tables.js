// The tables below the charts: decisions, refusals, scores, who decides, orders, faults, checkpoints, workers, what managers said.

import { bytes, count, duration, element, instant, missing, percent, seconds, tick } from "./words.js";

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
    cell(one.reason, "words"), cell(outcome(one.score), "words"), ...failed);
}

// How all decisions of an interval turned out, once that is known.
function outcome(score) {
  if (!score) return "not known yet";
  const spare = [[score.too_many, "too many"], [score.too_few, "too few"]].filter(([n]) => n).map(([n, what]) => `${count(n)} ${what}`);
  const late = (value) => (missing(value) ? "" : ` ${count(Math.round(value))} late`);
  const nothing = missing(score.nothing_late) ? "" : `; doing nothing (${count(score.nothing_replicas)}):${late(score.nothing_late)}`;
  const second = score.runner_up ? `; runner-up ${score.runner_up} (${count(score.runner_up_replicas)}):${late(score.runner_up_late)}` : "";
  return `${spare.join(", ") || "just right"},${late(score.late)}${nothing}${second}`;
}

function refusal(one) {
  const wanted = one.wanted_least === one.wanted_most ? count(one.wanted_most) : `${count(one.wanted_least)} to ${count(one.wanted_most)}`;
  const when = one.first === one.last ? count(one.last) : `${count(one.first)}–${count(one.last)} (${count(one.times)} ×)`;
  return tr(cell(when, "tight"), cell(one.operator), cell(wanted, "tight"), cell(count(one.replicas), "tight"), cell(one.told, "words"));
}

const shareOf = (part, all) => (missing(part) || !all ? "–" : `${tick(100 * part / all)} %`);
const hundred = (value) => (missing(value) ? "–" : `${tick(100 * value)} %`);

const score = (one) => tr(cell(one.policy), cell(one.role), cell(count(one.intervals), "tight"), cell(count(one.too_many), "tight"),
  cell(count(one.too_few), "tight"), cell(shareOf(one.late, one.events), "tight"), cell(shareOf(one.nothing_late, one.events), "tight"),
  cell(hundred(one.forecast_error), "tight"), cell(hundred(one.naive_error), "tight"));

const decider = (one) => tr(cell(duration(one.time_s), "tight"), cell(one.policy), cell(one.reason, "words"));

function still(one) {
  const lasted = one.seconds === null ? "until the end" : duration(one.seconds);
  const [what, why] = one.cause === undefined ? ["pause", one.why] : ["fault", `${one.cause} (died ${count(one.deaths)} ×)`];
  return tr(cell(duration(one.time_s), "tight"), cell(what, "tight"), cell(lasted, "tight"), cell(why, "words"));
}

const checkpoint = (one) => tr(cell(missing(one.checkpoint) ? "none yet" : String(one.checkpoint), "tight"),
  cell(duration(one.age_s), one.old ? "tight bad" : "tight"), cell(seconds(one.took_s), "tight"), cell(bytes(one.size_bytes), "tight"),
  cell(count(one.committed), "tight"), cell(count(one.given_up), "tight"), cell(duration(one.every_s), "tight"));

const worker = (one) => tr(cell(one.worker), cell(one.region), cell(one.state),
  cell(`${one.hosted} of ${one.capacity}`, "tight"), cell(percent(one.utilisation), "tight"));

const said = (one) => tr(cell(duration(one.time_s), "tight"), cell(one.who), cell(`${one.word} ${one.subject}`), cell(one.reason, "words"));

const order = (one) => tr(cell(duration(Math.max(0, one.time_s)), "tight"), cell(instant(one.given_at), "tight"), cell(one.who), cell(one.told, "words"));

export function tables(moment) {
  const stood = [...moment.faults, ...moment.pauses].sort((a, b) => b.time_s - a.time_s);
  fill("decisions", ["interval", "operator", "replicas", "why", "how it turned out"], moment.decisions, decision, "no change in the last 1,000 intervals");
  fill("refusals", ["intervals", "operator", "wanted", "has", "limit"], moment.refusals, refusal, "nothing in the last 1,000 intervals");
  fill("scores", ["policy", "role", "intervals", "too many", "too few", "late", "had nothing changed", "forecast off", "last rate off"],
    moment.scores, score, "nothing is known yet");
  fill("deciders", ["time", "policy", "why"], moment.deciders, decider, "one policy, and nobody in its shadow");
  fill("orders", ["time", "given", "by", "order"], moment.steering.orders, order, "none so far");
  fill("faults", ["time", "what", "events stood still", "why"], stood, still, "none so far");
  const made = moment.checkpoints ? [moment.checkpoints] : [];
  fill("checkpoints", ["last", "age", "took", "wrote", "committed", "given up", "one every"], made, checkpoint, "this run makes none");
  document.getElementById("checkpoints").closest("section").hidden = !made.length;
  fill("workers", ["worker", "region", "state", "slots used", "utilisation"], moment.workers, worker, "this run has no workers that come and go");
  fill("managers", ["time", "manager", "said", "why"], moment.managers, said, "nothing so far");
}
