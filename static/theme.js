/** Light or dark: what was chosen with the switch, else what the system says. Fires `change`. */

const KEY = 'valley-theme';
const system = matchMedia('(prefers-color-scheme: dark)');

class Theme extends EventTarget {
  constructor() {
    super();
    /** @type {'light' | 'dark'} */
    this.mode = this.#wanted();
    system.addEventListener('change', () => this.#apply());
    addEventListener('storage', (event) => { if (event.key === KEY) this.#apply(); });
    this.#apply();
  }

  /** @returns {'system' | 'light' | 'dark'} */
  get choice() {
    try {
      const kept = localStorage.getItem(KEY);
      return kept === 'light' || kept === 'dark' ? kept : 'system';
    } catch {
      return 'system';
    }
  }

  set choice(choice) {
    try {
      if (choice === 'system') localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, choice);
    } catch { /* storage is off: the choice lasts until you leave the page */ }
    this.#apply(choice === 'system' ? undefined : choice);
  }

  #wanted() {
    return this.choice === 'system' ? (system.matches ? 'dark' : 'light') : this.choice;
  }

  #apply(mode = this.#wanted()) {
    document.documentElement.dataset.theme = mode;
    if (mode === this.mode) return;
    this.mode = mode;
    this.dispatchEvent(new Event('change'));
  }
}

export const theme = new Theme();
