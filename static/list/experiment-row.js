import { experimentBadge } from '../components/badge.js';
import { descriptionEditor } from '../components/description-editor.js';
import '../components/progress-bar.js';
import { tagChips } from '../components/tag-chips.js';
import { Thumbnail } from '../components/thumbnail.js';
import { element, icon } from '../elements.js';
import { DASH, aboutDuration, ago, duration, moment } from '../format.js';
import { STAGES } from '../panels/stage-names.js';
import { COLUMNS } from './columns.js';

const ACTIVE = ['queued', 'running'];

/** One experiment as a row of the table, updated in place so that nothing flickers. */
export class ExperimentRow {
  /**
   * @param {string} id
   * @param {{api: object, filterTag: (tag: string) => void, tick: (id: string, on: boolean, range: boolean) => void,
   *   act: (action: string, row: ExperimentRow) => void, described: (experiment: object) => void}} list
   */
  constructor(id, list) {
    this.id = id;
    this.list = list;
    this.thumbnail = new Thumbnail(list.api);
    this.tick = element('input', { type: 'checkbox', onclick: (event) => list.tick(id, this.tick.checked, event.shiftKey) });
    this.link = element('a', { onkeydown: (event) => { if (event.key === 'F2') this.edit(); } });
    this.pictureLink = element('a', { tabIndex: -1, 'aria-hidden': 'true' }, this.thumbnail.canvas);
    this.tags = element('span.chips');
    this.note = element('span.soft.note');
    this.error = element('p.error');
    this.naming = element('div.naming', {}, this.link, element('p.below', {}, this.tags, this.note), this.error);
    this.actions = element('div.row.row-actions');
    this.cells = Object.fromEntries(COLUMNS.map(({ key, title, number }) =>
      [key, element('td', { role: 'cell', class: number ? 'number' : null, 'data-column': key, 'data-title': title })]));
    this.bar = element('progress-bar');
    this.stateText = element('span');
    this.cells.state.append(this.stateText, this.bar);
    this.name = element('th.name', { role: 'rowheader', scope: 'row' }, this.naming);
    this.node = element('tr.experiment', { role: 'row', 'data-id': id },
      element('td.tick', { role: 'cell' }, this.tick),
      element('td.picture', { role: 'cell' }, this.pictureLink),
      this.name,
      Object.values(this.cells),
      element('td.actions-cell', { role: 'cell' }, this.actions));
  }

  show(experiment, { ticked, columns, trash }) {
    this.experiment = experiment;
    const { name, state } = experiment;
    this.setTicked(ticked);
    this.tick.setAttribute('aria-label', `Select ${name}`);
    this.node.dataset.state = state;
    this.#describe(experiment);
    for (const column of COLUMNS) {
      const cell = this.cells[column.key];
      cell.hidden = !columns.includes(column.key);
      if (!column.text) continue; // drawn below
      const text = column.text(experiment);
      setText(cell, text);
      cell.classList.toggle('unknown', text === DASH);
      if (column.full) cell.title = column.full(experiment);
    }
    this.#progress(experiment);
    setText(this.cells.took, experiment.active_seconds === null || experiment.origin === 'imported' ? DASH : duration(experiment.active_seconds));
    setText(this.cells.submitted, ago(experiment.created));
    this.cells.submitted.title = moment(experiment.created);
    this.#badge(experiment);
    this.#showActions(trash ? 'restore, purge' : `edit, ${ACTIVE.includes(state) ? 'cancel' : state === 'done' ? 'delete' : 'retry, delete'}`, name);
    this.#linkUnless(trash);
    this.setVisible(this.visible);
  }

  /** Pictures are fetched for rows on screen only. */
  setVisible(visible) {
    this.visible = visible;
    if (visible && this.experiment && !this.trash) this.thumbnail.show(this.experiment);
  }

  setTicked(ticked) {
    this.tick.checked = ticked;
    this.node.classList.toggle('ticked', ticked);
  }

  focus() {
    (this.trash ? this.actions.firstChild : this.link).focus();
  }

  /** Change name, tags and note in place. */
  edit() {
    if (this.editor) return;
    this.editor = descriptionEditor(this.experiment, { api: this.list.api, onEnd: (changed) => {
      this.editor.replaceWith(this.naming);
      this.editor = null;
      if (changed) this.list.described(changed);
      (this.actions.querySelector('[data-action=edit]') ?? this.link).focus();
    } });
    this.naming.replaceWith(this.editor);
  }

  close() {
    this.thumbnail.close();
  }

  /** What is in the trash cannot be opened. */
  #linkUnless(trash) {
    if (trash === this.trash) return;
    this.trash = trash;
    for (const link of [this.link, this.pictureLink]) {
      if (trash) link.removeAttribute('href');
      else link.setAttribute('href', `/experiments/${this.id}`);
    }
  }

  #describe({ name, tags, note, error }) {
    setText(this.link, name);
    setText(this.note, note);
    this.note.title = note;
    setText(this.error, error ?? '');
    this.error.title = error ?? '';
    const tagKey = tags.join();
    if (tagKey === this.tagKey) return;
    this.tagKey = tagKey;
    this.tags.replaceChildren(...tagChips(tags, this.list.filterTag));
  }

  #progress({ name, state, stage, progress, seconds_left: left }) {
    this.bar.hidden = !ACTIVE.includes(state);
    if (!this.bar.hidden) {
      this.bar.setAttribute('value', String(progress));
      this.bar.setAttribute('label', `${name}: done`);
    }
    const share = `${Math.round(100 * progress)} %`;
    setText(this.stateText, state === 'running' ? `${share}${left === null ? '' : `, ${aboutDuration(left)} left`}` : state);
    this.cells.state.title = state === 'running' ? (STAGES[stage] ?? stage) : '';
  }

  #badge(experiment) {
    const badgeKey = `${experiment.state} ${experiment.stage === 'cancelling'} ${experiment.verdict_kind}`;
    this.cells.verdict.title = experiment.error ?? experiment.sentence ?? '';
    if (this.badgeKey === badgeKey) return;
    this.badgeKey = badgeKey;
    this.cells.verdict.replaceChildren(experimentBadge(experiment));
  }

  /** Buttons are replaced only when the actions change: a new button would lose focus and a click in progress. */
  #showActions(wanted, name) {
    const key = `${wanted} ${name}`;
    if (this.actionsShown === key) return;
    const focused = this.actions.contains(document.activeElement) ? document.activeElement.dataset.action : null;
    this.actionsShown = key;
    const looks = { edit: ['pen', 'Edit'], cancel: ['stop', 'Cancel'], retry: ['again', 'Retry'], delete: ['bin', 'Delete'], restore: ['restore', 'Restore'], purge: ['bin', 'Delete for good'] };
    this.actions.replaceChildren(...wanted.split(', ').map((action) => {
      const [shape, words] = looks[action];
      const onclick = () => (action === 'edit' ? this.edit() : this.list.act(action, this));
      return element('button.plain', { type: 'button', 'data-action': action, title: words, 'aria-label': `${words} ${name}`, onclick }, icon(shape));
    }));
    if (focused) (this.actions.querySelector(`[data-action=${focused}]`) ?? this.actions.lastChild).focus();
  }
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
