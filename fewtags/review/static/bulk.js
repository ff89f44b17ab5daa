// Accept many at once: first see how many, and the ones nearest the level, where mistakes are.
import { call, tab, uid } from "./server.js";
import * as filters from "./filters.js";
import { source } from "./picture.js";

const dialog = document.getElementById("bulk");
const answer = document.getElementById("bulk-answer");
const level = document.getElementById("bulk-level");
const count = document.getElementById("bulk-count");
const sample = document.getElementById("bulk-sample");
const accept = document.getElementById("bulk-do");
const SUGGESTED = { yes: "0.95", no: "0.05" };
let preview = null;
let generation = 0;

export const number = (value) => value.toLocaleString("en");

export function setUp(done) {
  answer.addEventListener("change", () => { level.value = SUGGESTED[answer.value]; look(); });
  level.addEventListener("input", look);
  accept.addEventListener("click", () => send(done));
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target === level) event.preventDefault(); // it would press Cancel
  });
}

export function open() {
  const words = filters.words();
  document.getElementById("bulk-scope").textContent = words
    ? `Of the open suggestions that pass the filter (${words}).`
    : "Of all open suggestions. Set a filter first to accept fewer.";
  dialog.showModal();
  look();
}

async function look() {
  const mine = ++generation;
  accept.disabled = true;
  preview = null;
  if (!level.validity.valid) { count.textContent = "A level between 0 and 1, please."; return; }
  const query = filters.query(filters.SERVER);
  query.set("answer", answer.value);
  query.set("level", level.value);
  try {
    const found = await call(`/api/bulk?${query}`);
    if (mine !== generation) return;
    preview = found;
    show(found);
  } catch (problem) {
    if (mine === generation) count.textContent = `Not possible: ${problem.message}`;
  }
}

function show(found) {
  const ones = found.count === 1 ? "suggestion" : "suggestions";
  count.textContent = found.count ? `${number(found.count)} ${ones}; the least sure first:` : "No open suggestion is that sure.";
  accept.disabled = !found.count;
  accept.textContent = found.count ? `Answer ${answer.value} to ${number(found.count)}` : "Accept";
  sample.replaceChildren(...found.sample.map(card));
}

function card(item) {
  const entry = document.createElement("li");
  const image = Object.assign(new Image(), { src: source(item.image_number, "thumb"), alt: item.image, loading: "lazy" });
  const text = document.createElement("p");
  const chance = Object.assign(document.createElement("span"), { textContent: ` ${item.probability.toFixed(2)}` });
  text.append(item.category, chance);
  entry.append(image, text);
  return entry;
}

async function send(done) {
  accept.disabled = true;
  count.textContent = "Writing…";
  const body = { filters: filters.body(), answer: answer.value, level: Number(level.value), expected: preview.count, tab, request: uid() };
  try {
    const saved = await call("/api/bulk", body);
    dialog.close();
    done(saved.count, body.answer);
  } catch (problem) {
    await look();
    count.textContent = `Nothing was written: ${problem.message}`;
  }
}
