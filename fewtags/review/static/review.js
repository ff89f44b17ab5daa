// One question after the other. The next ones are here before they are needed, and answers leave in the background.
import { call, Outbox, tab, uid } from "./server.js";
import * as filters from "./filters.js";
import * as picture from "./picture.js";
import * as bulk from "./bulk.js";

const AHEAD = 6;
const FEW = 3;
const WORDS = { yes: "yes", no: "no", skipped: "skipped" };
const $ = (id) => document.getElementById(id);
let current = null;
let ahead = [];
let progress = null;
let given = 0; // answers and undos so far: counts that were on their way meanwhile are old
let generation = 0;
let loading = null;
const done = new Set(); // answered here: a list of questions that was on its way may still have them

const key = (item) => `${item.image}\n${item.category}`;
const spoken = (item) => `${item.question} ${Math.round(100 * item.probability)} percent likely.`;
const walking = () => filters.chosen().state !== "open";

const outbox = new Outbox({
  changed: (waiting, online) => {
    const count = waiting === 1 ? "1 answer is" : `${waiting} answers are`;
    trouble(online ? "" : `The server cannot be reached. ${count} waiting here and will be sent; nothing is lost.`);
    if (online && !waiting && (!current || ahead.length < FEW)) refill();
  },
  refused: (op, problem) => { done.delete(key(op.body)); say(`Not saved: ${problem.message}`); },
  saved: (op, { unit, previous }) => {
    if (unit !== null && op.before && previous !== op.before) say(`${op.body.category} had been answered ${previous} elsewhere; your answer replaces it.`);
  },
});

function trouble(text) {
  $("trouble").textContent = text;
  $("trouble").hidden = !text;
}

/** `aside` is for screen readers alone: others see it anyway. */
function say(text, aside = "") {
  $("status").replaceChildren(text, Object.assign(element("span", ` ${aside}`), { className: "unseen" }));
}

/** The next questions from the server; what is on screen or answered here is left out. */
function refill() {
  loading ??= fetchAhead(generation).finally(() => { loading = null; });
  return loading;
}

async function fetchAhead(mine) {
  const query = filters.query();
  query.set("count", Math.min(20, AHEAD + 1 + outbox.waiting.length));
  query.set("tab", tab);
  const [before, settled] = [given, !outbox.waiting.length];
  const last = ahead.at(-1) ?? current;
  if (walking() && last) query.set("after", last.row);
  let found;
  try {
    found = await call(`/api/next?${query}`);
  } catch (problem) {
    if (mine !== generation) return;
    trouble(problem.status ? problem.message : "The server cannot be reached; trying again.");
    setTimeout(() => { if (mine === generation) refill(); }, 1500);
    return;
  }
  if (mine !== generation) return;
  if (outbox.online) trouble("");
  const seen = new Set([current, ...ahead].filter(Boolean).map(key));
  ahead.push(...found.items.filter((item) => !done.has(key(item)) && !seen.has(key(item))));
  if (!progress || (settled && before === given)) setProgress(found.progress);
  if (!current && ahead.length) advance();
  picture.prefetch(ahead.slice(0, FEW));
}

async function restart() {
  generation += 1;
  loading = null;
  ahead = [];
  current = null;
  progress = null;
  done.clear();
  await settle();
}

/** Nothing is here to be shown: ask the server once it has every answer. */
async function settle() {
  const mine = generation;
  await outbox.flush();
  await loading;
  if (mine === generation && !current) await refill();
  if (mine === generation && !current && progress) showEmpty();
}

function advance() {
  current = ahead.shift() ?? null;
  if (!current) return settle();
  showItem(current);
  if (ahead.length < FEW) refill();
}

function answer(value) {
  if (!current || document.querySelector("dialog[open]")) return;
  const item = current;
  const body = { image: item.image, category: item.category, answer: value, tab, request: uid() };
  given += 1;
  done.add(key(item));
  count(item.state, value);
  outbox.add({ path: "/api/answers", body, item, before: item.state });
  picture.flash(value);
  advance();
  say(`${item.category}: ${WORDS[value]}.`, current ? spoken(current) : "");
}

async function undo() {
  if (document.querySelector("dialog[open]")) return;
  const unsent = outbox.takeBack();
  given += 1;
  if (unsent) {
    count(unsent.body.answer, unsent.before);
    return bringBack(unsent.item);
  }
  if (!outbox.online) return say("Cannot undo while the server cannot be reached.");
  await outbox.flush();
  try {
    const taken = await call("/api/undo", { tab });
    if (taken.unit === null) return say("Nothing to undo.");
    if (!taken.item) { await restart(); return say(`Took back ${bulk.number(taken.entries)} answers.`); }
    bringBack(taken.item);
    await recount();
  } catch (problem) {
    say(`Not undone: ${problem.message}`);
  }
}

/** The server's counts, once they have every answer in them. */
async function recount() {
  for (;;) {
    await outbox.flush();
    const before = given;
    const counts = await call(`/api/progress?${filters.query(filters.SERVER)}`);
    if (before === given) return setProgress(counts);
  }
}

function bringBack(item) {
  done.delete(key(item));
  ahead = ahead.filter((other) => key(other) !== key(item));
  if (current && key(current) !== key(item)) ahead.unshift(current);
  current = item;
  showItem(item);
  say("Took back the answer.", spoken(item));
}

function count(before, after) {
  if (!progress || before === after) return;
  setProgress({ ...progress, [before]: progress[before] - 1, [after]: progress[after] + 1 });
}

function setProgress(counts) {
  progress = counts;
  const share = (part) => (counts.total ? part / counts.total : 0);
  for (const state of ["yes", "no", "skipped"]) $("track").querySelector(`.${state}`).style.setProperty("--share", share(counts[state]));
  const finished = counts.yes + counts.no;
  $("track").setAttribute("aria-valuenow", Math.floor(100 * share(finished)));
  const skipped = counts.skipped ? `, ${bulk.number(counts.skipped)} skipped` : "";
  $("progress-text").textContent = `${bulk.number(finished)} of ${bulk.number(counts.total)} answered${skipped}`;
}

function showItem(item) {
  for (const part of document.querySelectorAll(".stage, .ask")) part.hidden = false;
  $("empty").hidden = true;
  picture.show(item);
  $("question").textContent = item.question;
  $("probability").textContent = `${(100 * item.probability).toFixed(item.probability > 0.995 || item.probability < 0.005 ? 1 : 0)} %`;
  $("gauge").style.setProperty("--share", item.probability);
  $("suggestion").textContent = item.suggestion;
  $("reason").replaceChildren(...item.reason.map((sentence) => element("li", sentence)));
  $("known").replaceChildren(...item.known.map(({ category, p }) => element("li", category, element("span", p.toFixed(2)))));
  const alike = item.similar.filter((image) => image.image_number !== null);
  $("alike").hidden = !alike.length;
  $("alike-title").textContent = `Most like it, among images known to show ${item.named}`;
  $("similar").replaceChildren(...alike.map(thumbnail));
  for (const [button, state] of [["yes", "yes"], ["no", "no"], ["skip", "skipped"]]) {
    $(button).setAttribute("aria-current", String(item.state === state));
  }
  document.querySelector(".scroll").scrollTop = 0;
}

function thumbnail({ image, image_number, similarity }) {
  const link = Object.assign(document.createElement("a"), { href: picture.source(image_number, "full"), target: "_blank" });
  const thumb = Object.assign(new Image(), { src: picture.source(image_number, "thumb"), alt: image });
  link.append(thumb, `${similarity.toFixed(2)} alike`);
  return element("li", link);
}

function element(name, ...content) {
  const made = document.createElement(name);
  made.append(...content);
  return made;
}

function showEmpty() {
  for (const part of document.querySelectorAll(".stage, .ask")) part.hidden = true;
  const counts = progress ?? { total: 0, skipped: 0 };
  const [title, text] = emptyWords(counts);
  $("empty-title").textContent = title;
  $("empty-text").textContent = text;
  $("empty-skipped").hidden = !counts.skipped || filters.chosen().state === "skipped";
  $("empty-clear").hidden = !filters.isNarrow();
  $("empty-export").hidden = filters.isNarrow();
  $("empty").hidden = false;
  $("empty-title").focus();
}

function emptyWords(counts) {
  if (!counts.total) return filters.isNarrow()
    ? ["Nothing passes the filter", "No suggestion is like this. Widen the filter, or clear it."]
    : ["No suggestions", "The file of suggestions has no rows."];
  if (walking()) return ["No more of these", "You have seen all suggestions with this answer."];
  if (counts.open) return ["The rest is open in another tab", `${bulk.number(counts.open)} left there. They come back two minutes after that tab goes quiet.`];
  const skipped = counts.skipped ? ` ${bulk.number(counts.skipped)} were skipped.` : "";
  return filters.isNarrow()
    ? ["Done with this filter", `All ${bulk.number(counts.total)} suggestions that pass it have an answer.${skipped}`]
    : ["All done", `All ${bulk.number(counts.total)} suggestions have an answer.${skipped}`];
}

async function exportLabels() {
  await outbox.flush();
  try {
    const written = await call("/api/export", {});
    $("exported-text").textContent = `${written.human === 1 ? "1 answer is" : `${bulk.number(written.human)} answers are`} in ${written.file}. To train on it: ${written.train}`;
  } catch (problem) {
    $("exported-text").textContent = `Not exported: ${problem.message}`;
  }
  $("exported").showModal();
}

const KEYS = {
  y: () => answer("yes"), ArrowRight: () => answer("yes"),
  n: () => answer("no"), ArrowLeft: () => answer("no"),
  s: () => answer("skipped"), ArrowDown: () => answer("skipped"),
  u: undo, ArrowUp: undo,
  a: picture.toggle, f: filters.toggle, "?": () => $("help").showModal(),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest("input, select, textarea, dialog")) return;
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

$("yes").addEventListener("click", () => answer("yes"));
$("no").addEventListener("click", () => answer("no"));
$("skip").addEventListener("click", () => answer("skipped"));
$("undo").addEventListener("click", undo);
$("empty-undo").addEventListener("click", undo);
$("bulk-button").addEventListener("click", async () => { await outbox.flush(); bulk.open(); });
$("help-button").addEventListener("click", () => $("help").showModal());
$("export-button").addEventListener("click", exportLabels);
$("empty-export").addEventListener("click", exportLabels);
$("empty-clear").addEventListener("click", () => filters.clear(restart));
$("empty-skipped").addEventListener("click", () => filters.choose("state", "skipped", restart));

async function start() {
  try {
    filters.setUp(await call("/api/setup"), restart);
  } catch (problem) {
    trouble(problem.status ? problem.message : "The server cannot be reached; trying again.");
    return setTimeout(start, 1500);
  }
  bulk.setUp(async (saved, value) => { await restart(); say(`Answered ${value} to ${bulk.number(saved)}. Undo takes all of them back.`); });
  await outbox.flush();
  restart();
}

start();
