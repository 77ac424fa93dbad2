import { element, icon } from '../elements.js';
import { experimentBadge } from '../components/badge.js';
import { confirmDialog } from '../components/confirm-dialog.js';
import { showToast, toastErrors } from '../components/toasts.js';
import { Thumbnail } from '../components/thumbnail.js';
import '../components/progress-bar.js';
import { coloursOf } from '../colours.js';
import { STAGES } from '../panels/stage-names.js';
import { aboutDuration, ago, duration, moment } from '../format.js';

const ACTIVE = ['queued', 'running'];

/** One experiment in the list, updated in place so nothing flickers. */
export class ExperimentRow {
  constructor(id, { api, choose, changed }) {
    this.id = id;
    this.api = api;
    this.changed = changed;
    this.thumbnail = new Thumbnail(api);
    this.tick = element('input', { type: 'checkbox', onchange: () => choose(id, this.tick.checked) });
    this.link = element('a', { href: `/experiments/${id}` });
    this.facts = element('p.soft.facts');
    this.sentence = element('p.sentence');
    this.badge = element('div');
    this.bar = element('progress-bar');
    this.time = element('p.soft');
    this.actions = element('div.row.row-actions');
    this.node = element('li.experiment', { 'data-id': id },
      element('div.tick', {}, this.tick),
      element('a.picture', { href: `/experiments/${id}`, tabIndex: -1, 'aria-hidden': 'true' }, this.thumbnail.canvas),
      element('div.what', {}, element('h2', {}, this.link), this.facts, this.sentence),
      element('div.how', {}, this.badge, this.bar, this.time),
      this.actions);
  }

  show(experiment, ticked) {
    const { name, state, progress } = experiment;
    this.tick.checked = ticked;
    this.tick.setAttribute('aria-label', `Compare ${name}`);
    this.node.dataset.state = state;
    this.link.textContent = name;
    this.#facts(experiment);
    this.sentence.textContent = experiment.error ?? experiment.sentence ?? waiting(experiment);
    this.sentence.title = this.sentence.textContent;
    this.sentence.classList.toggle('bad', Boolean(experiment.error));
    this.bar.hidden = !ACTIVE.includes(state);
    this.bar.setAttribute('value', String(progress));
    this.bar.setAttribute('label', `${name}: done`);
    this.time.textContent = time(experiment);
    this.time.title = `submitted ${moment(experiment.created)}`;
    this.#badgeAndActions(experiment);
    this.thumbnail.show(experiment);
  }

  close() {
    this.thumbnail.close();
  }

  #facts({ dataset, model, minima }) {
    const factsKey = `${dataset} ${model} ${minima}`;
    if (this.factsKey === factsKey) return;
    this.factsKey = factsKey;
    const colours = coloursOf(minima);
    const shown = minima.slice(0, 6).map((minimum) => element('span.minimum', {},
      element('span.dot', { style: `background:${colours[minimum]}` }), minimum));
    const rest = minima.length > 6 ? [`and ${minima.length - 6} more`] : [];
    this.facts.replaceChildren(element('span', {}, `${dataset} · ${model}`), ...shown, ...rest);
  }

  #badgeAndActions(experiment) {
    const { state, stage } = experiment;
    const badgeKey = `${state} ${stage === 'cancelling'} ${experiment.verdict_kind}`;
    if (this.badgeKey === badgeKey) return;
    this.badgeKey = badgeKey;
    this.badge.replaceChildren(experimentBadge(experiment));
    this.#showActions(experiment);
  }

  /** Buttons are replaced only when the actions change: a new button would lose focus and a click in progress. */
  #showActions({ state, name }) {
    const actionsShown = ACTIVE.includes(state) ? 'cancel' : state === 'done' ? 'delete' : 'retry and delete';
    if (this.actionsShown === actionsShown) return;
    this.actionsShown = actionsShown;
    const button = (shape, words, act) => element('button.plain', { type: 'button', title: words, 'aria-label': `${words} ${name}`, onclick: act }, icon(shape));
    this.actions.replaceChildren(...(actionsShown === 'cancel'
      ? [button('stop', 'Cancel', () => this.#post('cancel'))]
      : [state === 'done' ? null : button('again', 'Retry', () => this.#post('retry')), button('bin', 'Delete', () => this.#delete(name))].filter(Boolean)));
  }

  async #post(action) {
    await toastErrors(() => this.api.post(`/api/experiments/${this.id}/${action}`));
    await this.changed();
  }

  async #delete(name) {
    const text = `“${name}” moves to the trash. It is deleted with its files after a day; until then you can undo this.`;
    if (!(await confirmDialog({ title: 'Delete this experiment?', text, action: 'Delete' }))) return;
    const neighbour = this.node.nextElementSibling ?? this.node.previousElementSibling;
    await toastErrors(async () => {
      await this.api.del(`/api/experiments/${this.id}`);
      showToast(`“${name}” is in the trash.`, { action: ['Undo', () => this.#post('restore')] });
    });
    await this.changed();
    (neighbour?.querySelector('h2 a') ?? document.querySelector('h1')).focus(); // its own button is gone
  }
}

function waiting({ state, stage }) {
  if (state === 'queued') return 'Waiting for a worker.';
  if (state === 'running') return `Running: ${STAGES[stage] ?? stage}.`;
  return '';
}

function time({ state, finished, seconds_left: left, active_seconds: active, progress, created }) {
  const share = `${Math.round(100 * progress)} %`;
  if (state === 'queued') return `submitted ${ago(created)}`;
  if (state === 'running') return left === null ? share : `${share}, ${aboutDuration(left)} left`;
  return active !== null ? `in ${duration(active)}, ${ago(finished)}` : ago(finished ?? created);
}
