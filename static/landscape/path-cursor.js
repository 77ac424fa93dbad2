/** The t along the paths that is being looked at, shared by the pictures of a view. Fires `change`. */
export class Cursor extends EventTarget {
  /** @type {number | null} */
  t = null;

  set(t) {
    if (t === this.t) return;
    this.t = t;
    this.dispatchEvent(new Event('change'));
  }
}
