/** Barrier and rise between every two of three or more minima: a heat map whose cells choose the pair to be judged. */

import { badge } from '../components/badge.js';
import { dataTable } from '../components/data-table.js';
import { colouredName, element } from '../elements.js';
import { DASH } from '../format.js';
import { barrierText, fromJson, intervalText, significant } from '../plots/numbers.js';
import { cellColour, cellInk, cellMark, scaleEnd } from '../plots/matrix-cells.js';
import { style } from '../plots/theme.js';
import { drawAligned } from './aligned-matrix.js';
import { segmented } from './toolbar-controls.js';
import { inLossUnit, withLossUnit } from '../plots/loss-unit.js';

const FEWEST = 3;
const MANY = 7;
const MARKS = { within: '✓', near: '?', above: '' };
const WORDS = { within: 'within the tolerance', near: 'the interval contains the tolerance', above: 'above the tolerance' };
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export class MatrixPanel {
  #live;
  #context;
  #behind = element('div.behind', { hidden: true });
  #cells = new Map();
  /** Row and column of the only cell that Tab reaches; arrow keys move it. */
  #place = null;

  constructor(live, { urlState, colours }) {
    this.#live = live;
    this.#context = { urlState, colours };
    this.quantity = segmented({
      label: 'show',
      options: [['barrier', 'barrier'], ['rise', 'rise']],
      onchange: (quantity) => urlState.push({ matrix: quantity === 'rise' ? quantity : null }),
    });
    this.order = element('button', { type: 'button', hidden: true, 'aria-pressed': 'false', onclick: () => this.#cluster() }, 'By clusters');
    this.button = element('button.plain.table-button',
      { type: 'button', 'aria-expanded': 'false', onclick: () => this.#toggle() }, 'Table');
    this.grid = element('div.scroll', { tabIndex: -1, role: 'region', 'aria-label': 'matrix of minima' });
    this.legend = element('div.matrix-legend');
    this.aligned = element('div.scroll', { tabIndex: -1, role: 'region', 'aria-label': 'matrix of minima, aligned', hidden: true });
    this.judged = element('div.matrix-judged', { 'aria-live': 'polite' });
    this.node = element('section.panel.matrix', { hidden: true },
      element('div.toolbar', {}, element('h2', {}, 'Between every two minima'), this.quantity.node, this.order, this.button),
      element('div.matrix-body', {}, element('div', {}, this.grid, this.legend, this.aligned), this.judged),
      this.#behind);
  }

  /** The names by clusters, once every line is measured; null before. */
  setOrder(order) {
    this.byClusters = order;
    this.order.hidden = !order;
  }

  #cluster() {
    this.clustered = this.clustered ? null : this.byClusters;
    this.order.setAttribute('aria-pressed', String(Boolean(this.clustered)));
    this.draw();
  }

  update(view) {
    this.view = view;
    this.quantity.show(view.matrix);
    this.draw();
  }

  draw() {
    const { matrix: measured, experiment } = this.#live;
    const matrix = measured && this.clustered ? permuted(measured, this.clustered) : measured;
    this.shown = matrix;
    // A comparison of methods has its own table, and lines from SGD only.
    this.node.hidden = !matrix || experiment.minima.length < FEWEST || Boolean(experiment.spec.methods || experiment.spec.forks);
    if (this.node.hidden || !this.view) return;
    const { minima } = matrix;
    const key = minima.join();
    if (key !== this.key) this.#arrange(key, minima);
    const values = squareOf(matrix, this.view.matrix);
    const end = scaleEnd(values.value.flat(), matrix.tolerance);
    const judged = this.#live.verdict?.between ?? [];
    for (const [place, cell] of this.#cells) {
      const [row, column] = place.split(',').map(Number);
      this.#paint(cell, [minima[row], minima[column]], at(values, row, column), end, judged);
    }
    this.#drawLegend(end);
    drawAligned(this.aligned, matrix, this.view.matrix, end, this.#context.colours);
    this.#drawJudged();
    if (!this.#behind.hidden) this.#fill();
  }

  #arrange(key, minima) {
    this.key = key;
    const focused = this.grid.contains(document.activeElement);
    this.#cells.clear();
    const name = (index) => colouredName(this.#context.colours[minima[index]], element('span', {}, minima[index]));
    const rows = minima.map((_, row) =>
      element('tr', {},
        element('th', { scope: 'row' }, name(row)),
        minima.map((_, column) => element('td', {}, row === column ? null : this.#cell(row, column)))));
    this.grid.replaceChildren(
      element('table.heat', { 'data-many': String(minima.length >= MANY) },
        element('caption.visually-hidden', {}, 'Barrier or rise of the straight line from a row’s minimum to a column’s'),
        element('thead', {}, element('tr', {}, element('td'), minima.map((_, column) => element('th', { scope: 'col' }, name(column))))),
        element('tbody', {}, rows)));
    this.#reach(this.#place && this.#cells.has(this.#place.join()) ? this.#place : [0, 1], focused);
  }

  #cell(row, column) {
    const cell = element('button', {
      type: 'button',
      tabIndex: -1,
      onclick: () => {
        this.#reach([row, column]);
        this.#choose(row, column);
      },
      onkeydown: (event) => this.#onKey(event, row, column),
    });
    this.#cells.set(`${row},${column}`, cell);
    return cell;
  }

  #onKey(event, row, column) {
    const last = this.shown.minima.length - 1;
    const inside = (index) => Math.min(last, Math.max(0, index));
    if (event.key === 'Home' || event.key === 'End') {
      event.preventDefault();
      const end = event.key === 'Home' ? 0 : last;
      this.#reach([row, end === row ? end + (end ? -1 : 1) : end], true);
    }
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    let next = [row + step[0], column + step[1]];
    if (next[0] === next[1]) next = [next[0] + step[0], next[1] + step[1]]; // over the diagonal
    if (next.every((index) => index === inside(index))) this.#reach(next, true);
  }

  #reach(place, focus = false) {
    if (this.#place) this.#cells.get(this.#place.join())?.setAttribute('tabindex', '-1');
    this.#place = place;
    const cell = this.#cells.get(place.join());
    cell?.setAttribute('tabindex', '0');
    if (focus) cell?.focus();
  }

  /** The experiment's own pair needs no word in the address. */
  #choose(row, column) {
    const { minima } = this.shown;
    this.choose([minima[row], minima[column]]);
  }

  choose(pair) {
    const own = this.#live.ownVerdict?.between ?? [];
    const chosen = pair && own.join() !== pair.join() ? pair.join() : null;
    this.#context.urlState.push({ pair: chosen, plane: null, zoom: null, camera: null, clip: null, eclip: null });
  }

  #paint(cell, [from, to], { value, low, high }, end, judged) {
    const missing = Number.isNaN(value);
    const mark = missing ? null : cellMark(value, low, high, this.shown.tolerance);
    const colour = missing ? null : cellColour(value, end);
    cell.style.cssText = missing ? '' : `background:rgb(${colour});color:${cellInk(colour)}`;
    cell.disabled = missing;
    cell.dataset.mark = mark ?? 'missing';
    const { matrix: quantity } = this.view;
    cell.title = missing
      ? `${from} to ${to}: not measured`
      : `${from} to ${to}: ${quantity} ${barrierText(value)}${withInterval(low, high)}, ${WORDS[mark]}`;
    cell.setAttribute('aria-pressed', String(judged.includes(from) && judged.includes(to)));
    cell.replaceChildren(
      element('span.visually-hidden', {}, cell.title),
      element('span', { 'aria-hidden': 'true' }, missing ? '–' : shortText(value)),
      element('small', { 'aria-hidden': 'true' }, MARKS[mark] ?? ''),
    );
  }

  #drawLegend(end) {
    const { tolerance, split } = this.shown;
    const { stops } = style.maps.loss;
    this.legend.replaceChildren(
      element('span', {}, '0'),
      element('span.matrix-scale', { 'aria-hidden': 'true', style: `background:linear-gradient(to right, ${stops.join()})` },
        element('i', { style: `left:${Math.min(100, (100 * tolerance) / end)}%` })),
      element('span', {}, withLossUnit(significant(end))),
      element('span.soft', {}, `${this.view.matrix} of the ${split} loss on the straight line; `
        + `✓ within the tolerance ${significant(tolerance)}, ? its interval contains it; outlined: the judged pair.`));
  }

  /** The judged pair beside the cells: the verdict itself may be out of sight. */
  #drawJudged() {
    const { verdict, ownVerdict, pair } = this.#live;
    const key = JSON.stringify([verdict?.between, verdict?.kind, Boolean(pair)]);
    if (key === this.judgedKey) return; // a live region speaks whenever it changes
    this.judgedKey = key;
    if (!verdict) return this.judged.replaceChildren();
    const [start, end] = verdict.between;
    const own = ownVerdict?.between;
    this.judged.replaceChildren(
      ...[
        element('h3', {}, `${start} and ${end}`),
        badge(verdict.kind),
        element('p', {}, verdict.finding ?? verdict.sentence),
        pair && own
          ? element('button', { type: 'button', onclick: () => this.choose(null) }, `Back to ${own[0]} and ${own[1]}`)
          : element('p.soft', {}, 'Choose a cell to judge another pair.'),
      ].filter(Boolean),
    );
  }

  #toggle() {
    this.#behind.hidden = !this.#behind.hidden;
    this.button.setAttribute('aria-expanded', String(!this.#behind.hidden));
    if (this.#behind.hidden) this.#behind.replaceChildren();
    else this.#fill();
  }

  #fill() {
    const matrix = this.shown;
    const squares = ['barrier', 'rise'].map((quantity) => squareOf(matrix, quantity));
    const pairs = matrix.minima.flatMap((_, row) => matrix.minima.slice(row + 1).map((_, index) => [row, row + 1 + index]));
    const cells = ({ value, low, high }) => [barrierText(value), intervalText(low, high) || DASH];
    this.#behind.replaceChildren(dataTable({
      caption: inLossUnit('barrier and rise between every two minima'),
      text: ['from', 'to'],
      numbers: ['barrier', 'interval', 'rise', 'interval'],
      rows: pairs.map(([row, column]) => [
        matrix.minima[row],
        matrix.minima[column],
        ...squares.flatMap((square) => cells(at(square, row, column))),
      ]),
    }));
  }
}

/** The matrix with its minima in another order. */
function permuted(matrix, order) {
  const places = order.map((name) => matrix.minima.indexOf(name));
  const square = (rows) => places.map((row) => places.map((column) => rows[row][column]));
  const quantity = ({ value, low, high }) => ({ value: square(value), low: square(low), high: square(high) });
  const squares = ({ barrier, rise }) => ({ barrier: quantity(barrier), rise: quantity(rise) });
  return { ...matrix, minima: order, ...squares(matrix), aligned: matrix.aligned && squares(matrix.aligned) };
}

function squareOf(matrix, quantity) {
  return Object.fromEntries(
    ['value', 'low', 'high'].map((part) => [part, matrix[quantity][part].map((row) => row.map(fromJson))]),
  );
}

function at(square, row, column) {
  return { value: square.value[row][column], low: square.low[row][column], high: square.high[row][column] };
}

function withInterval(low, high) {
  const text = intervalText(low, high);
  return text && ` (interval ${text})`;
}

/** A number that fits into a cell: 0.012, 1.23, 12.3, 456. */
function shortText(value) {
  if (!Number.isFinite(value)) return '∞';
  return value < 1 ? value.toFixed(3) : value < 1000 ? value.toPrecision(3) : value.toExponential(0).replace('e+', 'e');
}
