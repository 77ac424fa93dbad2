/** The position t on the paths that the pointer is at, shared by all plots of a view. Fires `change`. */
export class Cursor extends EventTarget {
  /** @type {number | null} */
  t = null;

  set(t) {
    if (t === this.t) return;
    this.t = t;
    this.dispatchEvent(new Event('change'));
  }
}
