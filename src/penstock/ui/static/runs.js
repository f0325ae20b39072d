// The page of all runs.

import { count, duration, element, fail, instant, read } from "./words.js";

const AGAIN_MS = 5000;
let chosen = []; // to be compared; the last two

function row(run) {
  const link = element("a", { href: `/run/${encodeURIComponent(run.run)}` }, run.run);
  const state = run.finished_at ? (run.settings.simulated ? "simulated" : "ended") : "goes on, or was killed";
  const box = element("input", { type: "checkbox", "aria-label": `compare ${run.run}`, value: run.run });
  box.checked = chosen.includes(run.run);
  return element("tr", {},
    element("td", { class: "tight" }, box),
    element("td", {}, link),
    element("td", {}, run.topology),
    element("td", {}, run.policy),
    element("td", { class: "tight" }, instant(run.started_at)),
    element("td", {}, state),
    element("td", { class: "number" }, count(run.intervals)),
    element("td", { class: "number" }, duration(run.td_s)));
}

function choose({ target }) {
  chosen = chosen.filter((one) => one !== target.value);
  if (target.checked) chosen = [...chosen, target.value].slice(-2);
  for (const box of document.querySelectorAll("#runs input")) box.checked = chosen.includes(box.value);
  const link = document.getElementById("compare");
  link.setAttribute("aria-disabled", String(chosen.length < 2));
  if (chosen.length < 2) link.removeAttribute("href");
  else link.href = `/compare?a=${encodeURIComponent(chosen[0])}&b=${encodeURIComponent(chosen[1])}`;
}

async function show() {
  try {
    const found = await read("/api/runs");
    document.getElementById("store").textContent = `store ${found.store}, ${count(found.runs.length)} runs`;
    const rows = found.runs.map(row);
    const focused = document.activeElement?.getAttribute?.("href") ?? null;
    const ticked = document.activeElement?.matches?.("#runs input") ? document.activeElement.value : null;
    document.querySelector("#runs tbody").replaceChildren(...rows);
    if (focused) document.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
    if (ticked) document.querySelector(`#runs input[value="${CSS.escape(ticked)}"]`)?.focus();
    fail(null);
  } catch (error) {
    fail(error);
  }
}

document.getElementById("runs").addEventListener("change", choose);
await show();
document.body.dataset.ready = "yes";
setInterval(show, AGAIN_MS);
