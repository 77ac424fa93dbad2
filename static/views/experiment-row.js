import { element, icon } from '../elements.js';
import { experimentBadge } from '../components/badge.js';
import { confirm } from '../components/confirm-dialog.js';
import { notify } from '../components/toasts.js';
import { Thumbnail } from '../components/thumbnail.js';
import '../components/progress-bar.js';
import { coloursOf } from '../colours.js';
import { STAGES } from '../panels/stage-names.js';
import { ago, duration, moment, secondsBetween } from '../format.js';

const ACTIVE = ['queued', 'running'];

/** One experiment in the list. It is made once and changed in place, so that nothing flickers. */
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
    this.actions = element('div.row.actions-of-row');
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
    this.#face(experiment);
    this.thumbnail.show(experiment);
  }

  close() {
    this.thumbnail.close();
  }

  #facts({ dataset, model, minima }) {
    const said = `${dataset} ${model} ${minima}`;
    if (this.said === said) return;
    this.said = said;
    const colours = coloursOf(minima);
    const shown = minima.slice(0, 6).map((minimum) => element('span.minimum', {},
      element('span.dot', { style: `background:${colours[minimum]}` }), minimum));
    const rest = minima.length > 6 ? [`and ${minima.length - 6} more`] : [];
    this.facts.replaceChildren(element('span', {}, `${dataset} · ${model}`), ...shown, ...rest);
  }

  #face(experiment) {
    const { state, stage } = experiment;
    const face = `${state} ${stage === 'cancelling'} ${experiment.verdict_kind}`;
    if (this.face === face) return;
    this.face = face;
    this.badge.replaceChildren(experimentBadge(experiment));
    this.#offer(experiment);
  }

  /** A button stays while it is offered: one that is replaced loses its focus, and a click that has begun on it. */
  #offer({ state, name }) {
    const offered = ACTIVE.includes(state) ? 'cancel' : state === 'done' ? 'delete' : 'retry and delete';
    if (this.offered === offered) return;
    this.offered = offered;
    const button = (shape, words, act) => element('button.plain', { type: 'button', title: words, 'aria-label': `${words} ${name}`, onclick: act }, icon(shape));
    this.actions.replaceChildren(...(offered === 'cancel'
      ? [button('stop', 'Cancel', () => this.#do('cancel'))]
      : [state === 'done' ? null : button('again', 'Retry', () => this.#do('retry')), button('bin', 'Delete', () => this.#delete(name))].filter(Boolean)));
  }

  async #do(action) {
    try {
      await this.api.post(`/api/experiments/${this.id}/${action}`);
    } catch (error) {
      notify(error.message, { bad: true });
    }
    await this.changed();
  }

  async #delete(name) {
    const text = `“${name}” and all its files will be gone. This cannot be undone.`;
    if (!(await confirm({ title: 'Delete this experiment?', text, action: 'Delete' }))) return;
    try {
      await this.api.del(`/api/experiments/${this.id}`);
    } catch (error) {
      notify(error.message, { bad: true });
    }
    await this.changed();
  }
}

function waiting({ state, stage }) {
  if (state === 'queued') return 'Waits for a worker.';
  if (state === 'running') return `Now ${STAGES[stage] ?? stage}.`;
  return '';
}

function time({ state, started, finished, seconds_left: left, progress, created }) {
  const share = `${Math.round(100 * progress)} %`;
  if (state === 'queued') return `submitted ${ago(created)}`;
  if (state === 'running') return left === null ? share : `${share}, ${duration(left)} left`;
  return started ? `in ${duration(secondsBetween(started, finished))}, ${ago(finished)}` : ago(finished ?? created);
}
