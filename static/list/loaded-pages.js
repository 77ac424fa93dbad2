/** The experiments that are loaded, page by page, in the order of the server. */
export class LoadedPages {
  /** @type {object[][]} */
  pages = [];
  /** @type {string | null} cursor of the page after the last */
  next = null;

  get items() {
    return this.pages.flat();
  }

  /** Begins anew with a first page. */
  reset({ items, next }) {
    this.pages = [items];
    this.next = next;
  }

  append({ items, next }) {
    const known = new Set(this.items.map(({ id }) => id));
    this.pages.push(items.filter(({ id }) => !known.has(id)));
    this.next = next;
  }

  /**
   * The first page as it is now. What it pushed off its end stays below it: later pages begin where they did,
   * so nothing gets lost between them.
   */
  refreshFirst(page) {
    if (this.pages.length === 1) {
      this.reset(page);
      return;
    }
    const first = new Set(page.items.map(({ id }) => id));
    const others = (items) => items.filter(({ id }) => !first.has(id));
    const [top, ...rest] = this.pages.map(others);
    this.pages = [[...page.items, ...top], ...rest];
  }

  /** New values of some experiments, in place; those that were asked for and are not there any more go. */
  refresh(asked, items) {
    const found = new Map(items.map((item) => [item.id, item]));
    const gone = new Set(asked.filter((id) => !found.has(id)));
    this.pages = this.pages.map((page) => page.filter(({ id }) => !gone.has(id)).map((item) => found.get(item.id) ?? item));
  }
}
