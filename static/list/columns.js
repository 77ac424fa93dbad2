/** The columns of the list of experiments, and which of them you chose to see. */

import { DASH, percent } from '../format.js';
import { barrierText } from '../plots/numbers.js';

const KEY = 'valley-columns';
const nats = (value) => (value === null ? DASH : barrierText(value));

/** "cnn channels=[16, 32] hidden=128" in short: "cnn 16-32 128". */
const shortNetwork = (model) => model.replaceAll(/\w+=/g, '').replaceAll(/\[([^\]]*)\]/g, (_, list) => list.replaceAll(', ', '-'));

/**
 * `sort`: the field by which the server sorts; `first`: how a first click sorts, '-' for the largest first;
 * `text`: the content of a cell (a row draws the others itself); `from`: the width of a window that shows it unasked.
 */
export const COLUMNS = [
  { key: 'verdict', title: 'verdict', sort: 'verdict_kind', first: '', from: 0, hint: 'what the straight line says; before that, the state' },
  { key: 'rise', title: 'rise', sort: 'rise', first: '-', number: true, from: 0, hint: 'highest minus lowest loss along the line, in nats or the unit of the loss', text: ({ rise }) => nats(rise) },
  { key: 'barrier', title: 'barrier', sort: 'barrier', first: '-', number: true, from: 0, hint: 'highest loss along the line minus that of the higher end, in nats or the unit of the loss', text: ({ barrier }) => nats(barrier) },
  { key: 'control', title: 'control', sort: 'control_barrier', first: '-', number: true, from: 1200, phone: true, hint: 'barrier on the line to the control, in nats or the unit of the loss', text: ({ control_barrier: barrier }) => nats(barrier) },
  { key: 'zero', title: 'zero groups', sort: 'zero_groups', first: '-', number: true, from: 0, hint: 'share of groups that are exactly zero in the second network', text: ({ zero_groups: share }) => percent(share) },
  { key: 'accuracy', title: 'accuracy', sort: 'accuracy', first: '-', number: true, from: 0, hint: 'test accuracy of the second network', text: ({ accuracy }) => percent(accuracy) },
  { key: 'data', title: 'data', sort: 'dataset', first: '', from: 1300, hint: 'data set', text: ({ dataset }) => dataset || DASH },
  { key: 'network', title: 'network', sort: 'model', first: '', from: 1700, hint: 'network and its options', text: ({ model }) => shortNetwork(model) || DASH, full: ({ model }) => model },
  { key: 'state', title: 'state', sort: 'state', first: '', from: 0, hint: 'state, and how much is done' },
  { key: 'took', title: 'took', sort: 'active_seconds', first: '-', number: true, from: 1400, hint: 'time that it ran' },
  { key: 'submitted', title: 'submitted', sort: 'created', first: '-', number: true, from: 1600, phone: true, hint: 'when it was submitted' },
];
const KEYS = COLUMNS.map(({ key }) => key);
const PHONE = 720;

/** What a window of this width shows unless you choose; a phone shows cards, which have room for some more. */
export function defaultColumns(width = innerWidth) {
  return COLUMNS.filter(({ from, phone }) => width >= from || (width <= PHONE && phone)).map(({ key }) => key);
}

/** The chosen columns, kept in this browser. Fires `change`. */
export class ColumnChoice extends EventTarget {
  #chosen = read();

  get shown() {
    return this.#chosen ?? defaultColumns();
  }

  get isDefault() {
    return this.#chosen === null;
  }

  /** @param {string[] | null} keys null: as wide as the window allows */
  choose(keys) {
    this.#chosen = keys && KEYS.filter((key) => keys.includes(key));
    try {
      if (keys) localStorage.setItem(KEY, JSON.stringify(this.#chosen));
      else localStorage.removeItem(KEY);
    } catch { /* storage is off: the choice lasts until you leave the page */ }
    this.dispatchEvent(new Event('change'));
  }
}

function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    return Array.isArray(kept) ? KEYS.filter((key) => kept.includes(key)) : null;
  } catch {
    return null;
  }
}
