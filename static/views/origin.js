/** The experiment that a new one varies: its name, a free name for the new one, and what has been changed. */

import { element } from '../elements.js';
import { differences } from '../landscape/spec-differences.js';

const shown = (value) => (value === undefined ? 'default' : typeof value === 'string' ? value : JSON.stringify(value));

export class Origin {
  /** @param {HTMLElement} title the heading of the page */
  constructor(api, title) {
    this.api = api;
    this.title = title;
    this.#clear();
  }

  /** @param {string | undefined} id of the experiment, if one is varied */
  async load(id) {
    if (id === this.id) return;
    if (!id) {
      this.#clear();
      return;
    }
    const found = await this.api.get(`/api/experiments/${id}`);
    const { imported, ...spec } = found.spec; // of an uploaded landscape: it says where the file came from
    const base = found.name.replace(/ \d+$/, '').slice(0, 110);
    const { items } = await this.api.get(`/api/experiments?limit=200&search=${encodeURIComponent(base)}`);
    Object.assign(this, { id, name: found.name, spec, newName: unusedName(base, items.map(({ name }) => name)) });
    this.changes = element('p', { role: 'status' });
    this.node = element('section.panel.origin', {},
      element('h2', {}, 'Varies ', element('a', { href: `/experiments/${id}` }, found.name)), this.changes);
    this.title.textContent = `Vary ${found.name}`;
    document.title = `Vary ${found.name} · Valleyscope`;
  }

  /** Says what differs from the origin. */
  show(values) {
    if (!this.node) return;
    const found = differences([this.spec, values]).filter(({ path }) => path !== 'name');
    const text = found.map(({ path, values: [before, after] }) => `${path}: ${shown(before)} → ${shown(after)}`);
    this.changes.replaceChildren(text.length ? `Changed: ${text.join('; ')}.` : 'Nothing is changed yet but the name. Changed fields are marked.');
  }

  #clear() {
    Object.assign(this, { id: undefined, name: null, spec: null, newName: null, node: null });
    this.title.textContent = 'New experiment';
  }
}

/** "digits 2", or the next number that no experiment has. */
function unusedName(base, taken) {
  let number = 2;
  while (taken.includes(`${base} ${number}`)) number += 1;
  return `${base} ${number}`;
}
