import { element, icon } from '../elements.js';

/** What a state or a verdict looks like: never by colour alone. */
const LOOKS = {
  'level valley': ['good', 'level'],
  'one basin, sloping': ['warn', 'slope'],
  'joined by a curve only': ['warn', 'arc'],
  separate: ['bad', 'split'],
  'one basin up to permutation': ['warn', 'level'],
  undecided: ['soft', 'question'],
  'no verdict': ['soft', 'question'],
  queued: ['soft', 'wait'],
  running: ['live', 'play'],
  cancelling: ['soft', 'stop'],
  done: ['good', 'check'],
  failed: ['bad', 'cross'],
  cancelled: ['soft', 'stop'],
  idle: ['soft', 'wait'],
  busy: ['live', 'play'],
};

/** The tone of a verdict or state: good, warn, bad, live or soft. */
export function toneOf(kind) {
  return LOOKS[kind]?.[0] ?? 'soft';
}

/**
 * A badge with icon and text.
 * @param {string} kind a verdict, or a state
 */
export function badge(kind) {
  const [tone, shape] = LOOKS[kind] ?? ['soft', 'question'];
  return element('span.badge', { 'data-tone': tone, 'data-kind': kind }, icon(shape), element('span', {}, kind));
}

/** The badge of an experiment: its verdict when it is done, else its state. */
export function experimentBadge(experiment) {
  if (experiment.state === 'done') return badge(experiment.verdict_kind ?? 'no verdict');
  return badge(experiment.stage === 'cancelling' ? 'cancelling' : experiment.state);
}
