import { element } from '../elements.js';
import { COLUMNS } from './columns.js';
import { ExperimentRow } from './experiment-row.js';

const NEAR = '1600px'; // pages farther from the screen give up their rows

/** The table of experiments. A page of rows is one `tbody`; those far from the screen are only as high as their rows were. */
export class ExperimentTable {
  #rows = new Map();
  #bodies = [];
  #shown = { pages: [], columns: [], chosen: new Set(), trash: false };
  #onScreen = new Set();

  /**
   * @param {object} list what rows call: see ExperimentRow
   * @param {{sort: (value: string) => void, tickAll: (on: boolean) => void}} head
   */
  constructor(list, head) {
    this.list = list;
    this.all = element('input', { type: 'checkbox', 'aria-label': 'Select all shown', onchange: () => head.tickAll(this.all.checked) });
    this.headings = [{ key: 'name', title: 'name', sort: 'name', first: '', hint: 'name, tags and note' }, ...COLUMNS].map((column) => ({ ...column, ...heading(column, head.sort) }));
    this.table = element('table.experiments', { role: 'table', 'aria-label': 'Experiments' },
      element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' },
        element('th.tick', { role: 'columnheader', scope: 'col' }, this.all),
        element('th.picture', { role: 'columnheader', scope: 'col' }, element('span.visually-hidden', {}, 'picture')),
        this.headings.map(({ node }) => node),
        element('th', { role: 'columnheader', scope: 'col' }, element('span.visually-hidden', {}, 'actions')))));
    this.table.addEventListener('focusout', () => this.#lookAgain());
    this.node = element('div.table-frame', {}, this.table);
    this.rowsSeen = new IntersectionObserver((entries) => this.#onRows(entries));
    this.bodiesSeen = new IntersectionObserver((entries) => this.#onBodies(entries), { rootMargin: NEAR });
    this.resized = new ResizeObserver(() => this.#fit());
    this.resized.observe(this.node);
    this.resized.observe(this.table);
  }

  /** The ids of the rows on screen. */
  get onScreen() {
    return [...this.#onScreen];
  }

  row(id) {
    return this.#rows.get(id);
  }

  /** @param {{pages: object[][], columns: string[], chosen: Set<string>, trash: boolean, sort: string}} what */
  show(what) {
    this.#shown = what;
    for (const column of this.headings) {
      column.node.hidden = column.key !== 'name' && !what.columns.includes(column.key);
      column.show(what.sort);
    }
    const focused = document.activeElement;
    const present = new Set(what.pages.flat().map(({ id }) => id));
    for (const [id, row] of this.#rows) if (!present.has(id)) this.#drop(id, row);
    while (this.#bodies.length > what.pages.length) this.#removeBody(this.#bodies.pop());
    what.pages.forEach((items, index) => this.#showPage(index, items));
    this.showTicks(what.chosen);
    if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true }); // a row that moved
  }

  showTicks(chosen) {
    for (const [id, row] of this.#rows) row.setTicked(chosen.has(id));
    const ids = this.#shown.pages.flat().map(({ id }) => id);
    const count = ids.filter((id) => chosen.has(id)).length;
    this.all.checked = count > 0 && count === ids.length;
    this.all.indeterminate = count > 0 && count < ids.length;
  }

  close() {
    for (const observer of [this.rowsSeen, this.bodiesSeen, this.resized]) observer.disconnect();
    for (const row of this.#rows.values()) row.close();
  }

  #showPage(index, items) {
    let body = this.#bodies[index];
    if (!body) {
      body = { node: element('tbody', { role: 'rowgroup' }), far: false };
      this.#bodies.push(body);
      this.table.append(body.node);
      this.bodiesSeen.observe(body.node);
    }
    body.items = items;
    if (!body.far) place(body.node, items.map((item) => this.#rowOf(item).node));
  }

  #rowOf(item) {
    const { columns, chosen, trash } = this.#shown;
    if (!this.#rows.has(item.id)) {
      const made = new ExperimentRow(item.id, this.list);
      this.#rows.set(item.id, made);
      this.rowsSeen.observe(made.node);
    }
    const row = this.#rows.get(item.id);
    row.show(item, { columns, trash, ticked: chosen.has(item.id) });
    return row;
  }

  #drop(id, row) {
    row.close();
    this.rowsSeen.unobserve(row.node);
    this.#rows.delete(id);
    this.#onScreen.delete(id);
    row.node.remove();
  }

  #removeBody(body) {
    this.bodiesSeen.unobserve(body.node);
    body.node.remove();
  }

  #onRows(entries) {
    for (const { target, isIntersecting } of entries) {
      const { id } = target.dataset;
      if (isIntersecting) this.#onScreen.add(id);
      else this.#onScreen.delete(id);
      this.#rows.get(id)?.setVisible(isIntersecting);
    }
  }

  #onBodies(entries) {
    for (const { target, isIntersecting } of entries) {
      const body = this.#bodies.find(({ node }) => node === target);
      if (!body || body.far === !isIntersecting) continue;
      body.inUse = target.contains(document.activeElement) || Boolean(target.querySelector('form'));
      if (body.inUse) continue;
      body.far = !isIntersecting;
      if (isIntersecting) {
        this.#showPage(this.#bodies.indexOf(body), body.items);
      } else {
        const height = target.getBoundingClientRect().height;
        for (const { id } of body.items) if (this.#rows.has(id)) this.#drop(id, this.#rows.get(id));
        target.replaceChildren(element('tr.far', { role: 'row', 'aria-hidden': 'true', style: `height:${height}px` }, element('td')));
      }
    }
  }

  /** Pages that kept their rows for the focus give them up when it has left; an observer reports a new target at once. */
  #lookAgain() {
    for (const { node } of this.#bodies.filter(({ inUse }) => inUse)) {
      this.bodiesSeen.unobserve(node);
      this.bodiesSeen.observe(node);
    }
  }

  /** A table wider than the window scrolls sideways; otherwise its head stays in sight. */
  #fit() {
    const wide = this.table.scrollWidth > this.node.clientWidth + 1;
    if (wide === this.node.classList.contains('wide')) return;
    this.node.classList.toggle('wide', wide);
    for (const [name, value] of [['tabindex', '0'], ['role', 'region'], ['aria-label', 'Table of experiments']]) {
      if (wide) this.node.setAttribute(name, value);
      else this.node.removeAttribute(name);
    }
  }
}

/** The head of a column, with a button that sorts by it: one way, the other way, then newest first again. */
function heading({ key, title, sort, first, number, hint }, choose) {
  const other = first ? '' : '-';
  let current = '';
  const mark = element('span.sort-mark', { 'aria-hidden': 'true' });
  const button = element('button.plain', { type: 'button', title: hint, onclick: () => {
    choose(current === first + sort ? other + sort : current === other + sort ? '' : first + sort);
  } }, title, mark);
  const node = element('th', { role: 'columnheader', scope: 'col', class: [key === 'name' ? 'name' : '', number ? 'number' : ''].join(' ').trim() || null, 'data-column': key },
    button);
  return { node, show: (value) => {
    current = value;
    const sorted = value.replace('-', '') === sort;
    const down = value.startsWith('-');
    if (sorted) node.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    else node.removeAttribute('aria-sort');
    mark.textContent = sorted ? (down ? '▾' : '▴') : '';
  } };
}

/** Orders rows without moving those already in place, so that focus and pictures stay. */
function place(body, nodes) {
  nodes.forEach((node, index) => {
    if (body.children[index] !== node) body.insertBefore(node, body.children[index] ?? null);
  });
  while (body.children.length > nodes.length) body.lastChild.remove();
}
