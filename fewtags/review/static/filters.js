// Filters live in the address, so that reloading or sharing it keeps them.
const form = document.getElementById("filters");
const button = document.getElementById("filters-button");
const DEFAULTS = { category: "", low: "0", high: "1", decision: "", origin: "", state: "open", order: "" };
export const SERVER = ["category", "low", "high", "decision", "origin"];
const NARROWING = [...SERVER, "state"];

export function setUp(setup, changed) {
  DEFAULTS.order = setup.order;
  form.elements.category.append(...setup.categories.map((name) => new Option(name, name)));
  read();
  button.addEventListener("click", toggle);
  form.addEventListener("change", () => apply(changed));
  form.addEventListener("input", showRange);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => { event.preventDefault(); clear(changed); });
  addEventListener("popstate", () => { read(); changed(); });
}

export function toggle() {
  form.hidden = !form.hidden;
  button.setAttribute("aria-expanded", String(!form.hidden));
  if (!form.hidden) form.elements.category.focus();
  else button.focus();
}

export function clear(changed) {
  fill(DEFAULTS);
  apply(changed);
}

export function choose(name, value, changed) {
  form.elements[name].value = value;
  apply(changed);
}

/** What is chosen, without what is not. */
export function chosen() {
  return Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, form.elements[name].value]));
}

export const isNarrow = () => NARROWING.some((name) => chosen()[name] !== DEFAULTS[name]);

/** For the server; `only`: these names. */
export function query(only = Object.keys(DEFAULTS)) {
  const values = Object.entries(chosen()).filter(([name, value]) => only.includes(name) && value !== "");
  return new URLSearchParams(values);
}

/** For the body of a bulk accept. */
export function body() {
  const { category, low, high, decision, origin } = chosen();
  const list = (value) => (value ? [value] : []);
  return { category: list(category), low: Number(low), high: Number(high), decision: list(decision), origin: list(origin) };
}

export function words() {
  const { category, low, high, decision, origin } = chosen();
  const label = (name) => form.elements[name].selectedOptions[0].textContent;
  const parts = [category && `category ${category}`, (low !== "0" || high !== "1") && `probability ${low} to ${high}`,
    decision && `decision: ${label("decision")}`, origin && `decided by ${label("origin")}`];
  return parts.filter(Boolean).join(", ");
}

function apply(changed) {
  const { low, high } = form.elements;
  if (Number(low.value) > Number(high.value)) [low.value, high.value] = [high.value, low.value];
  const differing = Object.entries(chosen()).filter(([name, value]) => value !== DEFAULTS[name]);
  const address = new URLSearchParams(differing).toString();
  history.replaceState(null, "", address ? `?${address}` : location.pathname);
  show();
  changed();
}

function read() {
  const address = new URLSearchParams(location.search);
  fill({ ...DEFAULTS, ...Object.fromEntries([...address].filter(([name]) => name in DEFAULTS)) });
  show();
}

function fill(values) {
  for (const [name, value] of Object.entries(values)) form.elements[name].value = value;
  for (const name of ["category", "decision", "origin", "state", "order"]) {
    if (form.elements[name].selectedIndex < 0) form.elements[name].value = DEFAULTS[name]; // not in the list
  }
}

function show() {
  const count = NARROWING.filter((name) => chosen()[name] !== DEFAULTS[name]).length;
  const badge = document.getElementById("filters-on");
  badge.hidden = !count;
  badge.textContent = String(count);
  button.setAttribute("aria-label", count ? `Filter, ${count} set` : "Filter");
  showRange();
}

function showRange() {
  const { low, high } = form.elements;
  document.getElementById("range-text").textContent = `${low.value} to ${high.value}`;
}
