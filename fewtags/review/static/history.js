// The latest answers, each of which can be taken back.
import { call, tab } from "./server.js";

const body = document.getElementById("units");
const status = document.getElementById("status");

async function show() {
  const { units } = await call("/api/history?limit=200");
  body.replaceChildren(...units.map(row));
  if (!units.length) status.textContent = "No answer yet.";
}

function row(unit) {
  const line = document.createElement("tr");
  line.className = unit.undone ? "undone" : "";
  const what = unit.entries === 1 ? `${unit.category} in ${unit.image}` : `${unit.entries.toLocaleString("en")} at once, from ${unit.category} in ${unit.image}`;
  const who = unit.tab === tab ? "this one" : unit.tab.slice(0, 6);
  line.append(cell(new Date(1000 * unit.time).toLocaleString()), cell(what, "what"), cell(unit.answer, `answer ${unit.answer}`), cell(who), cell(unit.undone ? "taken back" : button(unit, what)));
  return line;
}

function cell(content, name = "") {
  const made = document.createElement("td");
  made.className = name;
  made.append(content);
  return made;
}

function button(unit, what) {
  const made = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: "Take back" });
  made.setAttribute("aria-label", `Take back: ${what}`);
  made.addEventListener("click", async () => {
    made.disabled = true;
    try {
      await call("/api/undo", { tab, unit: unit.id });
      status.textContent = `Taken back: ${what}.`;
    } catch (problem) {
      status.textContent = `Not taken back: ${problem.message}`;
    }
    await show();
  });
  return made;
}

show().catch((problem) => { status.textContent = problem.message; });
