/** The position t on the paths that the pointer is at, shared by all plots of a view. Fires `change`. */
export class Cursor extends EventTarget {
  /** @type {number | null} */
  t = null;
  /** The name of the path that the pointer is on; null: all of them. */
  path = null;

  set(t, path = null) {
    if (t === this.t && path === this.path) return;
    this.t = t;
    this.path = path;
    this.dispatchEvent(new Event('change'));
  }
}
