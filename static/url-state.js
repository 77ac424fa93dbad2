/**
 * The state of a view lives in the query string, so that a link restores it and back and forward work.
 * All values are strings; one that is null, undefined or '' is left out.
 */
export class Store {
  /** @param {() => void} changed called after the query has changed */
  constructor(changed) {
    this.changed = changed;
  }

  /** @returns {Record<string, string>} */
  get() {
    return Object.fromEntries(new URLSearchParams(location.search));
  }

  /**
   * @param {Record<string, unknown>} patch fields to change
   * @param {{replace?: boolean}} [how] replace (the default) keeps the history short; false makes a step that "back" undoes
   */
  set(patch, { replace = true } = {}) {
    const address = this.address(patch);
    if (address === location.pathname + location.search) return;
    history[replace ? 'replaceState' : 'pushState'](history.state, '', address);
    this.changed();
  }

  /** The address of this view with some fields changed: for links. */
  address(patch) {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(patch)) {
      if (value === null || value === undefined || value === '') query.delete(name);
      else query.set(name, String(value));
    }
    const text = query.toString().replaceAll('%2C', ',');
    return location.pathname + (text ? `?${text}` : '');
  }
}
