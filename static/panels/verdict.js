/** The verdict in words and numbers; before it, the state of the experiment. */

import { badge, experimentBadge, toneOf } from '../components/badge.js';
import '../components/progress-bar.js';
import { element, icon } from '../elements.js';
import { aboutDuration, counted, duration, percent } from '../format.js';
import { barrierText, fromJson, intervalText } from '../plots/numbers.js';
import { STAGES, stepsOf, taskText } from './stage-names.js';
import { lossUnit, withLossUnit } from '../plots/loss-unit.js';

const UP_TO_PERMUTATION = 'one basin up to permutation';

/** "digits · cnn 16-32, 128 · 3 minima" */
export function factsOf({ dataset, spec, minima, origin }) {
  const usual = origin === 'imported' ? '' : 'cnn';
  const { name, ...options } = typeof spec.model === 'object' ? spec.model : { name: spec.model ?? usual };
  const words = Object.values(options).map((value) => (Array.isArray(value) ? value.join('-') : String(value)));
  return [dataset, [name, ...words].join(' '), counted(minima.length, 'minimum', 'minima')].filter(Boolean).join(' · ');
}

/** "done in 1 min 12 s", "training the minima, about 2 min left" */
export function stateText({ origin, state, stage, seconds_left: left, active_seconds: active, finished, error }) {
  if (origin === 'imported' && state === 'done') return 'uploaded';
  const took = active !== null && finished ? duration(active) : null;
  if (state === 'done') return took ? `done in ${took}` : 'done';
  if (state === 'running') return `${STAGES[stage] ?? stage}${left ? `, ${aboutDuration(left)} left` : ''}`;
  if (state === 'failed') return error ?? 'failed';
  return state === 'queued' ? 'waiting for a worker' : `${state}${took ? ` after ${took}` : ''}`;
}

export class VerdictPanel {
  node = element('section.verdict', { 'aria-label': 'Verdict' });
  #live;

  constructor(live) {
    this.#live = live;
  }

  draw() {
    const { verdict, experiment, contents } = this.#live;
    const notes = contents.warnings.map(({ minimum, message }) =>
      element('li', {}, minimum ? `${minimum}: ${message}` : message),
    );
    const list = notes.length ? element('ul.notes', { 'aria-label': 'Warnings' }, notes) : null;
    if (verdict) this.#drawVerdict(verdict, list);
    else this.#drawState(experiment, list);
  }

  /** "Now finding the flat subspace at sgd, 120 of about 740 products, on lab-7, cpu." */
  #activeWorkers() {
    const { active, hasWorkers, workers } = this.#live;
    if (active && !hasWorkers)
      return element('p.soft.active-worker', {}, 'No workers are running. Start one with “valley worker” to continue.');
    const [first, ...others] = workers;
    if (!first || !active) return null;
    const more = others.length ? `, and ${counted(others.length, 'more worker')}` : '';
    const counting = this.#live.products[first.task];
    const products = counting ? `, ${counting.products} of about ${counted(counting.expected, 'product')},` : '';
    return element('p.soft.active-worker', {}, `Now ${taskText(first.task)}${products} on ${first.host}, ${first.device}${more}.`);
  }

  #drawState(experiment, list) {
    this.node.dataset.tone = experiment.state === 'failed' ? 'bad' : 'soft';
    const running = experiment.state === 'running' || experiment.state === 'queued';
    this.node.replaceChildren(
      ...[
        element('div.verdict-head', {}, experimentBadge(experiment)),
        element('p.finding', {}, withoutVerdict(experiment)),
        reasons(experiment),
        running
          ? element('progress-bar', { value: String(experiment.progress), label: `progress of ${experiment.name}` })
          : null,
        running ? stages(experiment) : null,
        this.#activeWorkers(),
        list,
      ].filter(Boolean),
    );
  }

  #drawVerdict(verdict, list) {
    this.node.dataset.tone = toneOf(verdict.kind);
    const finding = findingOf(verdict);
    const [first, rest] = [finding, verdict.sentence.slice(finding.length).trim()].map(unbroken);
    this.node.replaceChildren(
      ...[
        element('div.verdict-head', {}, element('span.row', {}, badge(verdict.kind), ...alignedBadge(verdict)), element('a', { href: '/help' }, 'What do these words mean?')),
        element('p.finding', {}, first),
        element('dl.figures', {}, this.#numbers(verdict)),
        rest ? element('p.rest', {}, rest) : null,
        verdict.notes?.length
          ? element('ul.notes', {}, verdict.notes.map((note) => element('li', {}, note)))
          : null,
        list,
      ].filter(Boolean),
    );
  }

  #numbers(verdict) {
    const [start, end] = verdict.between ?? [];
    const control = verdict.control ?? {};
    const errors = verdict.test_error?.line;
    const sparse = this.#sparsest([start, end]);
    return [
      estimateCell(`rise, line ${start} to ${end}`, verdict.line?.rise?.value, verdict.line?.rise, verdict),
      barrierCell(`barrier, line ${start} to ${end}`, verdict.line, verdict),
      barrierCell(`barrier, line with ${end} aligned`, verdict.alignment?.line, verdict),
      barrierCell(`barrier, ${curveWords(verdict.curve?.name)}`, verdict.curve, verdict),
      barrierCell(`control: line to ${control.name}`, control.line, verdict),
      barrierCell(`control: curve to ${control.name}`, control.curve, verdict),
      errors
        ? cell(
            'test error on the line',
            `${(100 * errors.min).toFixed(1)} to ${percent(errors.max)}`,
            `mean ${percent(errors.mean)}`,
          )
        : null,
      sparse,
    ].filter(Boolean);
  }

  /** Of the judged pair: no number of the verdict comes from another network. */
  #sparsest(pair) {
    const runs = this.#live.runs.filter(({ name, final }) => pair.includes(name) && final.zero_groups > 0);
    if (!runs.length) return null;
    const { name, final } = runs.reduce((a, b) => (b.final.zero_groups > a.final.zero_groups ? b : a));
    return cell(
      `${name}: groups exactly zero`,
      percent(final.zero_groups),
      Number.isFinite(final.test_accuracy) ? `test accuracy ${percent(final.test_accuracy)}` : '',
    );
  }
}

/** What is done, what runs and what is still to come. */
function stages(experiment) {
  return element('ol.stages', { 'aria-label': 'Stages' }, stepsOf(experiment).map(({ words, state }) =>
    element('li', { 'data-state': state, 'aria-current': state === 'now' ? 'step' : null },
      state === 'done' ? icon('check') : null, words, state === 'done' ? element('span.visually-hidden', {}, ' (done)') : null)));
}

function barrierCell(label, values, verdict) {
  return values ? estimateCell(label, values.barrier === null ? Infinity : values.barrier, values, verdict) : null;
}

/** A number over its interval and its unit; a loss with a unit of its own has none. */
function estimateCell(label, value, interval, { level }) {
  if (value === undefined || value === null) return null;
  const text = intervalText(interval.low, interval.high);
  const shown = text && text !== 'none';
  const below = shown ? withLossUnit(`${level ? `${Math.round(100 * level)} %: ` : ''}${text}`) : [lossUnit(), text && `interval: ${text}`].filter(Boolean).join(', ');
  return cell(label, barrierText(fromJson(value)), below);
}

function cell(label, value, below) {
  return element('div', {}, element('dt', {}, label), element('dd', {}, value, element('small', {}, below)));
}

function withoutVerdict(experiment) {
  const { state, minima } = experiment;
  if (state === 'failed') return 'No verdict: the experiment failed.';
  if (state === 'done') return minima.length < 2 ? 'A verdict compares two minima; this landscape is about one.' : 'No verdict.';
  if (state === 'running') return 'No verdict yet.';
  return `No verdict${state === 'queued' ? ' yet' : ''}. ${capital(stateText(experiment))}.`;
}

/** The reasons of a failure; the server sends several in one line. */
function reasons({ state, error }) {
  if (state !== 'failed' || !error) return null;
  return element('ul.reasons', {}, error.split(/;\s+/).map((reason) => element('li', {}, reason)));
}

/** "curve valley" */
function curveWords(name) {
  return !name || name === 'curve' ? 'curve' : `curve ${name}`;
}

/** The kind with its numbers, as the verdict begins; earlier versions recorded the whole alone, which is split at a full stop. */
function findingOf({ finding, sentence }) {
  return finding && sentence.startsWith(finding) ? finding : sentence.split(/(?<=\.) (?=[A-Z])/)[0];
}

/** "95 %" stays on one line. */
function unbroken(text) {
  return text.replaceAll(/(\d) (%|nats|points?\b)/g, '$1\u00a0$2');
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1).replace(/\.$/, '');
}

/** "One basin up to permutation" beside the kind of the networks as given, unless that is one basin already. */
function alignedBadge({ kind, alignment }) {
  const oneBasin = ['level valley', 'one basin, sloping'].includes(kind);
  return alignment?.kind === UP_TO_PERMUTATION && !oneBasin ? [badge(UP_TO_PERMUTATION)] : [];
}
