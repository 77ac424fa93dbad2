/** The name of an experiment with its facts, tags and note, which can be changed in place. */

import { descriptionEditor } from '../components/description-editor.js';
import { tagChips } from '../components/tag-chips.js';
import { element, icon } from '../elements.js';
import { factsOf } from './verdict.js';

export class ExperimentHeading {
  #live;

  /** @param {boolean} editable false for read-only links and the gallery */
  constructor(live, api, editable = true) {
    this.#live = live;
    this.api = api;
    this.title = element('h1', { tabIndex: -1 });
    this.button = element('button.plain', { type: 'button', title: 'Edit name, tags and note', 'aria-label': 'Edit name, tags and note', onclick: () => this.edit() }, icon('pen'));
    this.chips = element('span.chips');
    this.note = element('p.note');
    this.shown = element('div.heading', {},
      element('div.heading-line', {}, this.title, editable ? this.button : null),
      element('p.soft.heading-facts', {}, element('span', {}, factsOf(live.experiment)), this.chips),
      this.note);
    this.node = element('div', {}, this.shown);
    this.draw();
  }

  draw() {
    const { name, tags, note } = this.#live.experiment;
    if (this.title.textContent !== name) this.title.textContent = name;
    if (this.tagKey !== tags.join()) this.chips.replaceChildren(...tagChips(tags));
    this.tagKey = tags.join();
    this.note.textContent = note;
    this.note.hidden = !note;
  }

  edit() {
    this.node.replaceChildren(descriptionEditor(this.#live.experiment, { api: this.api, onEnd: (changed) => {
      if (changed) this.#live.describe(changed);
      this.draw();
      this.node.replaceChildren(this.shown);
      this.button.focus();
    } }));
  }
}
