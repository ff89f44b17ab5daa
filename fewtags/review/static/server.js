// Talking to the server. Answers leave in order; one that cannot leave is kept, and tried again until it can.

export const uid = () => [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");

const kept = sessionStorage.getItem("fewtags.tab") || uid();
sessionStorage.setItem("fewtags.tab", kept);
export const tab = kept;

export class Refusal extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

export async function call(path, body) {
  const how = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, how);
  if (response.ok) return response.json();
  const detail = await response.json().then((answer) => answer.detail, () => response.statusText);
  throw new Refusal(response.status, typeof detail === "string" ? detail : JSON.stringify(detail));
}

const PREFIX = "fewtags.outbox.";
const LONGEST_WAIT = 10000;

/** Answers on their way. `changed(waiting, online)` is called whenever that changes, `refused(op, problem)` on a no. */
export class Outbox {
  constructor({ changed, refused, saved }) {
    Object.assign(this, { changed, refused, saved });
    this.waiting = this.#leftOver();
    this.online = true;
    this.sending = null;
    this.#keep();
  }

  add(op) {
    this.waiting.push(op);
    this.#keep();
    this.flush();
  }

  /** Take back what has not been tried yet; undefined if it may have arrived. */
  takeBack() {
    if (!this.waiting.length || this.waiting.at(-1).tried) return undefined;
    const op = this.waiting.pop();
    this.#keep();
    return op;
  }

  has(image, category) {
    return this.waiting.some((op) => op.body.image === image && op.body.category === category);
  }

  flush() {
    this.sending ??= this.#send().finally(() => { this.sending = null; });
    return this.sending;
  }

  async #send() {
    let wait = 500;
    while (this.waiting.length) {
      const op = this.waiting[0];
      try {
        op.tried = true;
        this.saved?.(op, await call(op.path, op.body));
      } catch (problem) {
        if (!(problem instanceof Refusal) || problem.status >= 500 || problem.status === 401) {
          this.#tell(false);
          await new Promise((resolve) => setTimeout(resolve, wait));
          wait = Math.min(2 * wait, LONGEST_WAIT);
          continue;
        }
        this.refused(op, problem);
      }
      this.waiting.shift();
      this.#keep();
      wait = 500;
      this.#tell(true);
    }
  }

  #tell(online) {
    this.online = online;
    this.changed(this.waiting.length, online);
  }

  #keep() {
    document.body.dataset.waiting = this.waiting.length;
    if (this.waiting.length) localStorage.setItem(PREFIX + tab, JSON.stringify(this.waiting));
    else localStorage.removeItem(PREFIX + tab);
  }

  /** What earlier pages could not send. Another tab may be sending it too: the server counts each once. */
  #leftOver() {
    const found = [];
    for (const key of Object.keys(localStorage).filter((name) => name.startsWith(PREFIX))) {
      try { found.push(...JSON.parse(localStorage.getItem(key))); } catch { /* not ours */ }
      localStorage.removeItem(key);
    }
    return found;
  }
}
