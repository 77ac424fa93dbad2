/** View state in the URL's query string, so links restore a view. Values are strings; null, undefined and '' are removed. */
export class UrlState {
  /** @param {() => void} changed called after each change */
  constructor(changed) {
    this.changed = changed;
  }

  /** @returns {Record<string, string>} */
  get() {
    return Object.fromEntries(new URLSearchParams(location.search));
  }

  /** Changes fields without a history entry. */
  set(patch) {
    this.#change(patch, 'replaceState');
  }

  /** Changes fields with a history entry, so "back" undoes the change. */
  push(patch) {
    this.#change(patch, 'pushState');
  }

  /** Changes fields without a history entry and without a redraw: the view already shows them. */
  note(patch) {
    this.#change(patch, 'replaceState', () => {});
  }

  #change(patch, method, done = this.changed) {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(patch)) {
      if (value === null || value === undefined || value === '') query.delete(name);
      else query.set(name, String(value));
    }
    const text = query.toString().replaceAll('%2C', ',');
    const address = location.pathname + (text ? `?${text}` : '');
    if (address === location.pathname + location.search) return;
    history[method](history.state, '', address);
    done();
  }
}
