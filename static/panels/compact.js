/** The compact networks: size and latency of the minima before and after their zero groups are removed. */

import { dataTable } from '../components/data-table.js';
import { colouredName, element } from '../elements.js';
import { bytes, plainPrecision } from '../format.js';

const TITLES = ['parameters', 'multiply-adds', 'file size', 'latency, 1 sample', 'latency, 32 samples'];

export class CompactPanel {
  #live;
  #colours;

  constructor(live, { colours }) {
    this.#live = live;
    this.#colours = colours;
    this.place = element('div');
    this.words = element('p.soft.caption');
    this.node = element('section.panel.compact', { hidden: true },
      element('h2', {}, 'Compact networks'), this.place, this.words);
  }

  draw() {
    const tried = this.#live.runs.filter(({ compact }) => compact?.smaller || compact?.refused);
    const smaller = tried.filter(({ compact }) => compact.smaller);
    this.node.hidden = tried.length === 0;
    this.place.replaceChildren(...(smaller.length ? [this.#table(smaller)] : []));
    this.words.textContent = [
      smaller.length ? 'Zero groups removed: the same outputs, up to rounding. Latency: median on one CPU thread, with quartiles; both networks in turn.' : '',
      ...tried.flatMap(({ name, compact }) => notes(name, compact)),
    ].join(' ').trim();
  }

  #table(runs) {
    return dataTable({
      caption: 'compact networks',
      text: ['minimum', ''],
      numbers: TITLES,
      rows: runs.flatMap(({ name, compact: { before, after, latency } }) => [
        [colouredName(this.#colours[name], name), 'as trained', ...sizes(before), ...times(latency, 'before')],
        ['', 'compact', ...sizes(after, before), ...times(latency, 'after')],
      ]),
    });
  }
}

function notes(name, { refused, left_whole: whole = {}, fixed_size: fixed = [] }) {
  const layers = Object.entries(whole).map(([layer, reason]) => `${layer} (${reason})`);
  return [
    refused ? `${name} was not made compact: ${refused}.` : '',
    layers.length ? `Left whole in ${name}: ${layers.slice(0, 5).join(', ')}${layers.length > 5 ? ` and ${layers.length - 5} more` : ''}.` : '',
    fixed.length ? `Compact ${name} takes images of this size only.` : '',
  ].filter(Boolean);
}

function sizes(size, before) {
  const cell = (key, words) =>
    element('span', {}, words(size[key]), before ? element('small.soft', {}, ` ${factor(before[key], size[key])}`) : null);
  const count = (number) => number.toLocaleString('en');
  return [cell('parameters', count), cell('multiply_adds', count), cell('bytes', bytes)];
}

function times(latency, side) {
  return ['1', '32'].map((batch) => {
    const found = latency?.[batch];
    if (!found) return '–';
    const { median, low, high } = found[side];
    const times = `${milliseconds(median)} ms`;
    const gain = side === 'after' ? `, ${factor(found.before.median, median)}` : '';
    return element('span', {}, times, element('small.soft', {}, ` ${milliseconds(low)} to ${milliseconds(high)}${gain}`));
  });
}

const milliseconds = (seconds) => plainPrecision(1000 * seconds, 3);
const factor = (before, after) => `${plainPrecision(before / Math.max(after, Number.MIN_VALUE), 2)}×`;
