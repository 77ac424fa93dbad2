/** Whether the server answers. While it does not, polls /healthz and resumes waiting requests when it is back. */

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 5000;

class Connection extends EventTarget {
  online = true;
  #waiting = [];

  setOnline() {
    if (this.online) return;
    this.online = true;
    this.dispatchEvent(new Event('change'));
    for (const resume of this.#waiting.splice(0)) resume();
  }

  setOffline() {
    if (!this.online) return;
    this.online = false;
    this.dispatchEvent(new Event('change'));
    this.#poll(FIRST_PAUSE);
  }

  /** Resolves when the server answers again; rejects when the signal is aborted. */
  untilOnline(signal) {
    return new Promise((resolve, reject) => {
      this.#waiting.push(resolve);
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  }

  #poll(pause) {
    setTimeout(async () => {
      if (this.online) return;
      const response = await fetch('/healthz', { cache: 'no-store' }).catch(() => null);
      if (response?.ok) this.setOnline();
      else this.#poll(Math.min(LONGEST_PAUSE, pause * 1.5));
    }, pause);
  }
}

export const connection = new Connection();
