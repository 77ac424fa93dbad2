/** Whether the server answers. While it does not, it is asked now and then, and whoever waits is told when it is back. */

const FIRST = 500;
const LONGEST = 5000;

class Connection extends EventTarget {
  online = true;
  #waiting = [];

  alive() {
    if (this.online) return;
    this.online = true;
    this.dispatchEvent(new Event('change'));
    for (const resume of this.#waiting.splice(0)) resume();
  }

  lost() {
    if (!this.online) return;
    this.online = false;
    this.dispatchEvent(new Event('change'));
    this.#ask(FIRST);
  }

  /** Resolves when the server answers again; rejects when the signal is aborted. */
  back(signal) {
    return new Promise((resolve, reject) => {
      this.#waiting.push(resolve);
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  }

  #ask(pause) {
    setTimeout(async () => {
      if (this.online) return;
      const response = await fetch('/healthz', { cache: 'no-store' }).catch(() => null);
      if (response?.ok) this.alive();
      else this.#ask(Math.min(LONGEST, pause * 1.5));
    }, pause);
  }
}

export const connection = new Connection();
