/** The position t on the paths, shared by all plots of a view: where the pointer is, else where the slider was left. */
export class Cursor extends EventTarget {
  /** @type {number | null} */
  t = null;
  /** Name of the path that is meant; null for all. @type {string | null} */
  path = null;
  #held = null;

  /** Move to where the pointer is; null: the pointer has left. Fires `change`. */
  set(t, path = null) {
    if (t === null) this.#move(this.#held?.t ?? null, this.#held?.path ?? null);
    else this.#move(t, path);
  }

  /** Stay at a position of one path until `hold(null)`; the pointer may move away from it and back. */
  hold(t, path = null) {
    this.#held = t === null ? null : { t, path };
    this.#move(t, t === null ? null : path);
  }

  /** Whether the slider's position is shown, not the pointer's. */
  get isHeld() {
    return this.#held !== null && this.t === this.#held.t && this.path === this.#held.path;
  }

  #move(t, path) {
    if (t === this.t && path === this.path) return;
    Object.assign(this, { t, path });
    this.dispatchEvent(new Event('change'));
  }
}
