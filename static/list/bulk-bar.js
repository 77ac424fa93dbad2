import { element } from '../elements.js';

const MOST_COMPARED = 6;

/** The bar above the table: how many are selected, and what to do with them. */
export class BulkBar {
  /** @param {Record<string, () => void>} actions */
  constructor(actions) {
    const button = (words, act) => element('button', { type: 'button', onclick: act }, words);
    this.count = element('span.count', { 'aria-live': 'polite' });
    this.compare = button('Compare', actions.compare);
    this.normal = [this.compare, button('Tag', actions.tag), button('Cancel', actions.cancel), button('Delete', actions.delete)];
    this.inTrash = [button('Restore', actions.restore), button('Delete for good', actions.purge)];
    this.clear = element('button.plain', { type: 'button', onclick: actions.clear }, 'Clear');
    this.node = element('div.bulk', { role: 'group', 'aria-label': 'Selected experiments' }, this.count, this.normal, this.inTrash, this.clear);
  }

  show(count, trash) {
    this.node.hidden = count === 0;
    this.count.textContent = `${count} selected`;
    for (const button of this.normal) button.hidden = trash;
    for (const button of this.inTrash) button.hidden = !trash;
    const fits = count >= 2 && count <= MOST_COMPARED;
    this.compare.disabled = !fits;
    this.compare.title = fits ? '' : `Select two to ${MOST_COMPARED} experiments`;
  }
}
