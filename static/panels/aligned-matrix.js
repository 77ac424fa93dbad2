/** The matrix of minima with the hidden units of each pair in one order, beside the matrix as given. */

import { colouredName, element } from '../elements.js';
import { cellColour, cellInk, cellMark } from '../plots/matrix-cells.js';
import { barrierText, fromJson } from '../plots/numbers.js';

const MARKS = { within: ' ✓', near: ' ?', above: '' };

/** Fill `node` with the aligned square of a quantity, in the colours of the one as given; hide it without one. */
export function drawAligned(node, matrix, quantity, end, colours) {
  const square = matrix.aligned?.[quantity];
  node.hidden = !square;
  if (!square) return node.replaceChildren();
  const { minima, tolerance } = matrix;
  const name = (minimum) => colouredName(colours[minimum], element('span', {}, minimum));
  const cell = (row, column) => {
    const [value, low, high] = ['value', 'low', 'high'].map((part) => fromJson(square[part][row][column]));
    if (row === column) return element('td');
    if (Number.isNaN(value)) return element('td', {}, '–');
    const colour = cellColour(value, end);
    const title = `${minima[row]} to ${minima[column]}, aligned: ${quantity} ${barrierText(value)}`;
    return element('td', { title, style: `background:rgb(${colour});color:${cellInk(colour)}` },
      barrierText(value) + MARKS[cellMark(value, low, high, tolerance)]);
  };
  node.replaceChildren(
    element('h3', {}, 'Aligned'),
    element('table.heat.aligned', {},
      element('thead', {}, element('tr', {}, element('td'), minima.map((minimum) => element('th', { scope: 'col' }, name(minimum))))),
      element('tbody', {}, minima.map((minimum, row) =>
        element('tr', {}, element('th', { scope: 'row' }, name(minimum)), minima.map((_, column) => cell(row, column)))))),
    element('p.soft', {}, 'The hidden units of the later of two minima are in the order of the earlier one.'),
  );
}
