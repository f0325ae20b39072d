// The page of one run: as it is now, or as it was at any interval.

import { Chart, nearest, showAll } from "./chart.js";
import { draw, inOrder } from "./graph.js";
import { steerable, steered } from "./steer.js";
import { Strips } from "./strips.js";
import { tables } from "./tables.js";
import { count, duration, element, fail, instant, milliseconds, missing, percent, rate, read, seconds, tick as fine } from "./words.js";

const MOST_POINTS = 1200; // then the series are read anew, in fewer
const SILENT_TD = 3; // intervals without news
const name = decodeURIComponent(location.pathname.split("/").at(-1));
const path = `/api/runs/${encodeURIComponent(name)}`;
const byId = (id) => document.getElementById(id);
const slider = byId("slider");
const page = { run: null, series: null, moment: null, following: true, chosen: null, operator: null, heard: Date.now() };

const share = (value) => (missing(value) ? "–" : `${fine(value)} %`);
const plain = { value: count };
const perSecond = { value: rate };
const pickTime = (index) => goTo(page.series.numbers[index]);
const charts = [
  ["Rates", [
    { name: "entered", label: "entered", colour: "blue" },
    { name: "left", label: "left", colour: "green" },
    { name: "expected", label: "expected", colour: "purple", band: ["expected_low", "expected_high"], dash: [5, 3] },
  ], perSecond],
  ["Replicas", [{ name: "replicas", label: "active", colour: "blue", step: true }], plain],
  ["Backlog", [
    { name: "backlog", label: "all", colour: "ink" },
    { name: "held", label: "held", colour: "orange" },
    { name: "booked", label: "booked", colour: "blue" },
    { name: "outside", label: "outside (lag)", colour: "purple" },
  ], plain],
  ["Latency", [
    { name: "p99_ms", label: "p99", colour: "orange" },
    { name: "mean_ms", label: "mean", colour: "green" },
    { name: "p50_ms", label: "p50", colour: "blue" },
    { name: "target_ms", label: "target", colour: "bad", dash: [4, 4], aside: true },
  ], { value: milliseconds, axis: milliseconds }],
  ["Late share", [
    { name: "late_percent", label: "late", colour: "bad" },
    { name: "promised_percent", label: "promised", colour: "grey", dash: [4, 4], aside: true },
  ], { value: share, axis: (value) => `${count(value)} %` }],
  ["Replicas beside what came", [
    { name: "too_many", label: "too many", colour: "blue", step: true },
    { name: "too_few", label: "too few", colour: "bad", step: true },
  ], plain],
  ["Late by what was decided", [
    { name: "late_avoided", label: "avoided", colour: "green", step: true },
    { name: "late_caused", label: "caused", colour: "bad", step: true },
  ], plain],
  ["Forecast off by", [
    { name: "forecast_percent", label: "forecast", colour: "purple" },
    { name: "naive_percent", label: "last rate", colour: "grey", dash: [4, 4] },
  ], { value: share, axis: (value) => `${count(value)} %` }],
  ["Checkpoints", [
    { name: "checkpoint_age_ms", label: "age of the last", colour: "blue" },
    { name: "checkpoint_ms", label: "it took", colour: "orange" },
  ], { value: milliseconds, axis: (value) => duration(value / 1000), ifKnown: true }],
  ["Dropped", [{ name: "dropped", label: "dropped", colour: "bad" }], perSecond],
].map(([title, lines, format]) => new Chart(byId("charts"), title, lines, format, pickTime));
const ofOperator = [
  ["Rates", [
    { name: "received", label: "received", colour: "blue" },
    { name: "processed", label: "processed", colour: "green" },
  ], perSecond],
  ["Replicas", [
    { name: "replicas", label: "active", colour: "blue", step: true },
    { name: "pool", label: "pool", colour: "grey", step: true, dash: [4, 4] },
  ], plain],
  ["Backlog", [{ name: "backlog", label: "backlog", colour: "ink" }], plain],
  ["Busy share", [{ name: "busy_share", label: "busy", colour: "orange" }], { value: percent, axis: percent }],
].map(([title, lines, format]) => new Chart(document.querySelector("#operator .charts"), title, lines, format,
  (index) => goTo(page.operator.number[index])));
const strips = new Strips(byId("strips"), choose);

function tiles({ interval, sources, operators, promise, checkpoints }) {
  const length = Math.max(interval.interval_s, 1e-9);
  const next = sources.filter((one) => one.expected.length).map((one) => one.expected[0]);
  const outside = operators.reduce((sum, one) => sum + one.outside, 0);
  const shown = {
    entered: rate(interval.entered / length),
    left: rate(interval.source_output / length),
    "expected next": next.length ? rate(next.reduce((a, b) => a + b)) : "–",
    replicas: count(interval.replicas),
    backlog: count(interval.backlog),
    "outside (lag)": count(outside),
    "latency p50": milliseconds(interval.latency_p50_ms),
    "latency p99": milliseconds(interval.latency_p99_ms),
    late: share(promise && hundredfold(promise.now)),
    "late so far": share(promise && hundredfold(promise.so_far)),
    dropped: count(interval.dropped),
    ...(checkpoints && { "checkpoint age": duration(checkpoints.age_s), "checkpoint took": seconds(checkpoints.took_s) }),
  };
  const broken = promise && promise.so_far > promise.late ? ["late so far"] : [];
  if (checkpoints?.old) broken.push("checkpoint age");
  byId("tiles").replaceChildren(...Object.entries(shown).map(([key, value]) =>
    element("div", { "data-tile": key, class: broken.includes(key) ? "bad" : "" }, element("dt", {}, key), element("dd", {}, value))));
}

const hundredfold = (value) => (missing(value) ? null : 100 * value);

// All replicas that plans foresee, by time; an operator without a timetable stays as it is.
function planned({ operators, time_s: now, interval }) {
  const steps = Math.max(0, ...operators.map((one) => one.planned.length));
  if (!steps) return [];
  const sum = (step) => operators.reduce((all, one) => all + (one.planned[step] ?? one.planned.at(-1) ?? one.replicas), 0);
  return [[now, interval.replicas], ...Array.from({ length: steps }, (_, step) => [now + (step + 1) * page.td_s, sum(step)])];
}

// What was expected of the next intervals, by time, from what entered in this one.
function ahead({ sources, time_s: now, interval }) {
  const steps = Math.max(0, ...sources.map((one) => one.expected.length));
  if (!steps) return [];
  const sum = (step) => sources.reduce((all, one) => all + (one.expected[step] ?? 0), 0);
  const start = [now, interval.entered / Math.max(interval.interval_s, 1e-9)];
  return [start, ...Array.from({ length: steps }, (_, step) => [now + (step + 1) * page.td_s, sum(step)])];
}

function show(moment) {
  page.moment = moment;
  slider.value = moment.number;
  byId("when").textContent = `interval ${count(moment.number)}, ends at ${duration(moment.time_s)}`;
  slider.setAttribute("aria-valuetext", byId("when").textContent);
  byId("note").textContent = moment.interval.note;
  byId("note").hidden = !moment.interval.note;
  inForce(moment.steering.in_force);
  tiles(moment);
  draw(byId("graph"), moment, page.chosen, choose);
  tables(moment);
  chartsNow();
}

// What a person has ordered and still holds, at this point in time.
function inForce({ told, td_s: td, policy }) {
  byId("in-force").textContent = `by order: ${told.join("; ")}`;
  byId("in-force").hidden = !told.length;
  page.td_s = td ?? page.run.td_s;
  about({ ...page.run, td_s: page.td_s, policy: policy ?? page.run.policy });
}

function chartsNow() {
  const { series, moment } = page;
  const { promise } = moment;
  const flat = (value) => (missing(value) ? undefined : series.times_s.map(() => value));
  const mean = { ...series.mean, target_ms: flat(promise?.target_ms), promised_percent: flat(hundredfold(promise?.late)) };
  const coming = { Rates: ahead(moment), Replicas: planned(moment) };
  strips.at(moment.number);
  const shown = charts.map((chart) => [chart, series.times_s, mean, series.most, moment.time_s, coming[chart.title]]);
  showAll([...shown, ...operatorNow()]);
}

// The chosen operator's charts, each with what it is to show.
function operatorNow() {
  const row = page.moment.operators.find((one) => one.operator === page.chosen);
  const panel = byId("operator");
  panel.hidden = !row;
  if (!row) return [];
  panel.querySelector("h2").textContent = `Operator ${row.operator}`;
  panel.querySelector(".why").textContent = row.trouble.why.join("; ") || "calm";
  const found = page.operator;
  if (!found || found.name !== page.chosen) return [];
  const times = found.number.map((number) => timeOf(number));
  const planned = row.planned.map((replicas, step) => [page.moment.time_s + (step + 1) * page.td_s, replicas]);
  return ofOperator.map((chart, place) => [chart, times, found, {}, page.moment.time_s, place === 1 ? planned : []]);
}

// The end of an interval, from those of the points around it.
function timeOf(number) {
  const { numbers, times_s: times } = page.series;
  let place = nearest(numbers, number);
  if (numbers[place] < number && place < numbers.length - 1) place += 1;
  if (place === 0 || numbers[place] === number) return times[place];
  const share = (number - numbers[place - 1]) / (numbers[place] - numbers[place - 1]);
  return times[place - 1] + share * (times[place] - times[place - 1]);
}

function worst({ operators }) {
  const grade = { bad: 2, warning: 1, calm: 0 };
  const first = [...operators].sort((a, b) => grade[b.trouble.level] - grade[a.trouble.level] || b.backlog - a.backlog);
  return first[0]?.operator ?? null;
}

async function choose(operator) {
  page.chosen = operator;
  draw(byId("graph"), page.moment, page.chosen, choose);
  showAll(operatorNow());
  await overTime(operator);
}

async function overTime(operator) {
  try {
    page.operator = { name: operator, ...(await read(`${path}/operators/${encodeURIComponent(operator)}`)) };
    showAll(operatorNow());
  } catch (error) {
    fail(error);
  }
}

// ── points in time ──────────────────────────────────────────────────────────

let asked = null;

async function goTo(number) {
  const { numbers } = page.series;
  const last = numbers.at(-1);
  page.following = number >= last;
  byId("follow").setAttribute("aria-pressed", String(page.following));
  asked?.abort();
  asked = new AbortController();
  const wanted = Math.min(Math.max(number, Number(slider.min)), last);
  slider.value = wanted;
  try {
    show(await read(`${path}/at/${wanted}`, asked.signal));
    fail(null);
  } catch (error) {
    if (error.name !== "AbortError") fail(error);
  }
}

function listen() {
  const by = (step) => () => goTo(Number(slider.value) + step);
  slider.addEventListener("input", () => goTo(Number(slider.value)));
  byId("first").addEventListener("click", () => goTo(Number(slider.min)));
  byId("back").addEventListener("click", by(-1));
  byId("on").addEventListener("click", by(1));
  byId("follow").addEventListener("click", () => goTo(Infinity));
  const keys = { ArrowLeft: by(-1), ArrowRight: by(1), Home: () => goTo(Number(slider.min)), End: () => goTo(Infinity) };
  document.addEventListener("keydown", (event) => {
    if (event.target === slider || event.altKey || event.ctrlKey || event.metaKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  const again = () => page.moment && show(page.moment);
  let width = document.body.clientWidth;
  new ResizeObserver(() => {
    if (document.body.clientWidth !== width) again();
    width = document.body.clientWidth;
  }).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
}

// ── a run that goes on ──────────────────────────────────────────────────────

function add({ series, moment }) {
  page.heard = Date.now();
  const mine = page.series;
  if (!mine.numbers.length || mine.numbers.length > MOST_POINTS) {
    begin().catch(fail);
    return;
  }
  const first = series.numbers.findIndex((one) => one > mine.numbers.at(-1));
  if (first >= 0) {
    mine.numbers.push(...series.numbers.slice(first));
    mine.times_s.push(...series.times_s.slice(first));
    for (const [key, values] of Object.entries(series.mean)) {
      mine.mean[key].push(...values.slice(first));
      mine.most[key]?.push(...values.slice(first));
    }
  }
  slider.max = mine.numbers.at(-1);
  strips.add(moment.number, moment.operators);
  grow(moment);
  steered(moment);
  if (page.following) show(moment);
  else chartsNow();
}

function grow(moment) {
  const row = moment.operators.find((one) => one.operator === page.operator?.name);
  if (!row || page.operator.number.at(-1) >= moment.number) return;
  const { received_rate: received, processed_rate: processed, replicas, pool, backlog, busy_share } = row;
  const values = { number: moment.number, received, processed, replicas, pool, backlog, busy_share };
  for (const [key, value] of Object.entries(values)) page.operator[key].push(value);
}

function state(kind, text) {
  byId("state").className = `pill ${kind}`;
  if (byId("state").textContent !== text) byId("state").textContent = text;
}

function watch() {
  if (page.run.finished_at) {
    state("ended", page.run.settings.simulated ? "simulated" : "ended");
    return;
  }
  const last = page.series.numbers.at(-1);
  const feed = new EventSource(`${path}/live${last === undefined ? "" : `?after=${last}`}`);
  const look = setInterval(() => {
    const silent_s = (Date.now() - page.heard) / 1000;
    if (feed.readyState !== EventSource.OPEN) state("lost", "connection lost, trying again");
    else if (silent_s > SILENT_TD * (page.td_s ?? page.run.td_s)) state("silent", `no news for ${duration(Math.round(silent_s))}`);
    else state("live", "live");
  }, 500);
  feed.addEventListener("interval", (event) => add(JSON.parse(event.data)));
  feed.addEventListener("ended", () => {
    feed.close();
    clearInterval(look);
    state("ended", "ended");
    steerable(false);
  });
}

function about({ topology, policy, td_s, started_at, settings }) {
  byId("name").textContent = name;
  document.title = `${name} · Penstock`;
  const trace = settings.trace ? ` · trace ${settings.trace}` : "";
  byId("about").textContent = `${topology} under ${policy} · td ${duration(td_s)}${trace} · started ${instant(started_at)}`;
}

async function begin() {
  const found = await read(path);
  page.run = found.run;
  page.series = found.series;
  about(found.run);
  steerable(found.steerable, path);
  if (!found.moment) return;
  steered(found.moment);
  const { numbers } = found.series;
  slider.min = found.series.first;
  slider.max = numbers.at(-1);
  const replicas = read(`${path}/replicas`); // comes while the rest is drawn
  page.chosen ??= worst(found.moment);
  const over = page.chosen && overTime(page.chosen);
  if (page.following || !page.moment) show(found.moment);
  strips.show(await replicas, inOrder(found.moment));
  await over;
}

try {
  listen();
  await begin();
  watch();
} catch (error) {
  fail(error);
}
document.body.dataset.ready = "yes";
