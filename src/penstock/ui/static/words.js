// Numbers and times as people read them.

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const fine = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });
const brief = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 2 });
const NONE = "–";

export const missing = (value) => value === null || value === undefined || Number.isNaN(value);

export const tick = (value) => (Math.abs(value) >= 10000 ? compact : fine).format(value);

export function count(value) {
  if (missing(value)) return NONE;
  return Math.abs(value) >= 100000 ? compact.format(value) : plain.format(value);
}

// In few characters, where there is little room.
export const short = (value) => (value < 1000 ? plain : brief).format(value);

export const rate = (value) => (missing(value) ? NONE : `${count(value)}/s`);

export const percent = (value) => (missing(value) ? NONE : `${Math.round(100 * value)} %`);

export function milliseconds(value) {
  if (missing(value)) return NONE;
  if (value >= 10000) return duration(value / 1000);
  return value >= 1000 ? `${(value / 1000).toFixed(2)} s` : `${plain.format(value)} ms`;
}

export const seconds = (value) => milliseconds(missing(value) ? null : 1000 * value);

export function bytes(value) {
  if (missing(value)) return NONE;
  const power = Math.min(3, Math.floor(Math.log10(value || 1) / 3));
  return `${plain.format(value / 1000 ** power)} ${["B", "kB", "MB", "GB"][power]}`;
}

export function duration(seconds) {
  if (missing(seconds)) return NONE;
  if (seconds < 10) return `${plain.format(seconds)} s`;
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  if (whole < 60) return `${whole} s`;
  const two = (number) => String(number).padStart(2, "0");
  return parts[0] ? `${parts[0]}:${two(parts[1])}:${two(parts[2])} h` : `${parts[1]}:${two(parts[2])} min`;
}

export const instant = (iso) => new Date(iso).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });

// An element with attributes, text and children; what is shown is never parsed as HTML.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.map((one) => (one instanceof Node ? one : String(one))));
  return made;
}

export async function read(path, signal) {
  const answer = await fetch(path, { signal });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `${path}: ${answer.status}`);
  return answer.json();
}

export function fail(error) {
  const place = document.getElementById("failure");
  place.textContent = error ? error.message : "";
  place.hidden = !error;
}
