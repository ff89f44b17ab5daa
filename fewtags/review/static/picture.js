// The image, and over it where the model looked.
import { call, Refusal } from "./server.js";

const frame = document.getElementById("frame");
const image = document.getElementById("image");
const heat = document.getElementById("heat");
const missing = document.getElementById("missing");
const tools = document.getElementById("heat-tools");
const button = document.getElementById("heat-button");
const strength = document.getElementById("heat-strength");
const SMOOTH = 256;
const grids = new Map();
let shown = null;
let available = true;
let wanted = localStorage.getItem("fewtags.heat") !== "off";

export const source = (number, size) => `/api/images/${number}/${size}`;

export function show(item) {
  shown = item;
  missing.hidden = true;
  image.hidden = false;
  image.alt = `${item.image}: is the category ${item.category} in it?`;
  image.src = source(item.image_number, "full");
  heat.hidden = true;
  document.getElementById("image-name").textContent = item.image;
  paint();
}

/** So that the next question appears at once. */
export function prefetch(items) {
  for (const item of items) {
    new Image().src = source(item.image_number, "full");
    if (wanted && available) grid(item).catch(() => {});
  }
}

export function toggle() {
  if (tools.hidden) return;
  wanted = !wanted;
  localStorage.setItem("fewtags.heat", wanted ? "on" : "off");
  paint();
}

export function flash(answer) {
  frame.classList.remove("said-yes", "said-no");
  void frame.offsetWidth; // starts the animation anew
  if (answer !== "skipped") frame.classList.add(`said-${answer}`);
}

function grid(item) {
  const key = `${item.image_number}/${item.category_number}`;
  if (!grids.has(key)) {
    if (grids.size > 200) grids.delete(grids.keys().next().value);
    const asked = call(`/api/attention/${key}`).then((answer) => answer.grid);
    asked.catch(() => grids.delete(key));
    grids.set(key, asked);
  }
  return grids.get(key);
}

async function paint() {
  button.setAttribute("aria-pressed", String(wanted));
  strength.disabled = !wanted;
  if (!available || !shown) return;
  const item = shown;
  try {
    const values = wanted ? await grid(item) : null;
    if (item !== shown) return;
    tools.hidden = !wanted && tools.hidden && !grids.size;
    if (values) { draw(values); tools.hidden = false; }
    heat.hidden = !values;
  } catch (problem) {
    if (problem instanceof Refusal && problem.message.includes("no attention")) available = false;
    if (item === shown) { heat.hidden = true; tools.hidden = !available; }
  }
  if (available && !wanted) tools.hidden = false;
}

/** A spotlight: the less attention, the darker. Where the model looked, the image stays as it is. */
function draw(values) {
  const height = values.length, width = values[0].length;
  const small = new OffscreenCanvas(width, height);
  const pixels = new ImageData(width, height);
  const flat = !values.flat().some((value) => value > 0);
  values.flat().forEach((value, place) => {
    pixels.data.set([8, 8, 12, flat ? 0 : Math.round(255 * (1 - value ** 0.6))], 4 * place);
  });
  small.getContext("2d").putImageData(pixels, 0, 0);
  heat.width = heat.height = SMOOTH;
  const context = heat.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(small, 0, 0, SMOOTH, SMOOTH);
  heat.style.opacity = strength.value;
}

image.addEventListener("load", () => {
  if (image.naturalWidth) frame.style.setProperty("--ratio", String(image.naturalWidth / image.naturalHeight));
});
image.addEventListener("error", () => {
  if (!shown) return;
  image.hidden = true;
  heat.hidden = true;
  missing.hidden = false;
  missing.textContent = `${shown.image} cannot be shown: is the file there, and whole? Skip it, or answer if you know.`;
});
button.addEventListener("click", toggle);
strength.addEventListener("input", () => { heat.style.opacity = strength.value; });
