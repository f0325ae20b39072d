// Orders to a run that goes on: freeze, bounds, replicas by hand, what it plans with, stop.

import { element } from "./words.js";

const byId = (id) => document.getElementById(id);
const kept = sessionStorage; // of this tab, gone with it
const SURE_MS = 5000;
let path = null;
let frozen = false;
let rows = new Map(); // of operators

export function steerable(open, where) {
  byId("steer").hidden = !open;
  if (!open || path) return;
  path = where;
  for (const id of ["token", "name-of"]) {
    byId(id).value = kept.getItem(id) ?? "";
    byId(id).addEventListener("input", () => kept.setItem(id, byId(id).value));
  }
  byId("who").addEventListener("submit", (event) => event.preventDefault());
  byId("freeze").addEventListener("click", () => give({ order: frozen ? "unfreeze" : "freeze" }));
  byId("stop").addEventListener("click", stop);
  byId("planning").addEventListener("submit", plan);
}

// What is in force, and the operators that there are.
export function steered({ operators, steering }) {
  if (byId("steer").hidden) return;
  const known = operators.map((one) => one.operator).sort();
  if (known.join() !== [...rows.keys()].join()) draw(known);
  const pools = new Map(operators.map((one) => [one.operator, one.pool]));
  for (const [name, row] of rows) for (const input of row.inputs) input.max = pools.get(name);
  tell(steering.in_force);
}

function tell({ frozen: now, by_hand: hands, limits, policy, shadow, canary, forecaster, td_s: td }) {
  frozen = now;
  byId("freeze").setAttribute("aria-pressed", String(now));
  byId("freeze").textContent = now ? "Unfreeze" : "Freeze";
  for (const [name, { inputs, release }] of rows) {
    const values = [...(limits[name] ?? [null, null]), hands[name] ?? null];
    inputs.forEach((input, place) => {
      if (document.activeElement !== input && !input.dataset.touched) input.value = values[place] ?? "";
    });
    release.disabled = !(name in hands);
  }
  for (const [key, value] of Object.entries({ policy, shadow, canary, forecaster, td_s: td })) {
    const input = byId("planning").elements[key];
    if (document.activeElement !== input && !input.dataset.touched) input.value = value ?? "";
  }
}

function draw(names) {
  const heads = ["operator", "at least", "at most", "", "by hand", ""];
  rows = new Map(names.map((name) => [name, row(name)]));
  byId("hands").replaceChildren(
    element("thead", {}, element("tr", {}, ...heads.map((one) => element("th", { scope: "col" }, one)))),
    element("tbody", {}, ...[...rows.values()].map((one) => one.line)));
  for (const input of document.querySelectorAll("#hands input, #planning input")) {
    input.addEventListener("input", () => { input.dataset.touched = "yes"; });
  }
}

function row(operator) {
  const number = (label) => element("input", { type: "number", min: 1, step: 1, "aria-label": `${operator}: ${label}` });
  const button = (text, then, attributes = {}) => {
    const made = element("button", { type: "button", ...attributes }, text);
    made.addEventListener("click", then);
    return made;
  };
  const [least, most, hand] = ["at least", "at most", "replicas by hand"].map(number);
  const value = (input) => (input.value === "" ? null : Number(input.value));
  const limit = button("Bound", () => give({ order: "limit", operator, least: value(least), most: value(most) }, least, most));
  const hold = button("Set", () => give({ order: "hold", operator, replicas: value(hand) }, hand));
  const release = button("Release", () => give({ order: "release", operator }, hand), { disabled: "" });
  const cell = (...children) => element("td", {}, ...children);
  const line = element("tr", { "data-operator": operator }, element("th", { scope: "row" }, operator), cell(least),
    cell(most), cell(limit), cell(hand), element("td", { class: "tight" }, hold, " ", release));
  return { line, inputs: [least, most, hand], release };
}

async function plan(event) {
  event.preventDefault();
  const { policy, shadow, canary, forecaster, td_s: td } = byId("planning").elements;
  const changed = (input) => input.dataset.touched && input.value.trim() !== "";
  if (changed(policy)) await give({ order: "policy", policy: policy.value.trim() }, policy);
  if (changed(shadow)) await give({ order: "shadow", policy: shadow.value.trim() }, shadow);
  if (changed(canary)) await give({ order: "canary", policy: canary.value.trim() }, canary);
  if (changed(forecaster)) await give({ order: "forecaster", forecaster: forecaster.value.trim() }, forecaster);
  if (changed(td)) await give({ order: "td", td_s: Number(td.value) }, td);
}

// A second click means it.
function stop() {
  const button = byId("stop");
  if (button.dataset.sure) {
    give({ order: "stop" });
    delete button.dataset.sure;
    button.textContent = "Stop with savepoint";
    return;
  }
  button.dataset.sure = "yes";
  button.textContent = "Really stop the run?";
  setTimeout(() => {
    delete button.dataset.sure;
    button.textContent = "Stop with savepoint";
  }, SURE_MS);
}

// Sends an order, and shows what is in force then, or why it was refused; `inputs` are those that it came from.
async function give(order, ...inputs) {
  if (!byId("who").reportValidity()) return;
  const headers = { "content-type": "application/json", authorization: `Bearer ${byId("token").value.trim()}` };
  const body = JSON.stringify({ ...order, who: byId("name-of").value });
  const answer = byId("answer");
  try {
    const found = await fetch(`${path}/orders`, { method: "POST", headers, body });
    if (!found.ok) throw new Error((await found.text()).trim());
    for (const input of inputs) delete input.dataset.touched;
    const now = await found.json();
    tell(now);
    answer.className = "soft";
    answer.textContent = now.told.length ? `In force: ${now.told.join("; ")}.` : "Nothing is in force but the policy.";
  } catch (error) {
    answer.className = "failure";
    answer.textContent = error.message;
  }
}
