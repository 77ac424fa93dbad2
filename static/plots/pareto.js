// Accuracy of pruned networks over the multiply-adds that they keep, coloured by the rise of the loss from SGD to them.

import { colourScale } from './contour.js';
import { baseLayout, escaped, style } from './theme.js';

const LOOK = style.pareto;
const { character: CHARACTER, covered: COVERED, height: HEIGHT, mark: MARK, positions: POSITIONS } = LOOK.labels;

/** A figure {data, layout} of the rows with accuracy and multiply-adds; a bar is the standard deviation over seeds.
 *
 * Networks with less than half of the best accuracy stand at the lower edge, with their number: the others need the room.
 * A name that would cover others is left out; it stands beside the pointer.
 */
export function paretoFigure(rows, { mode, narrow }) {
  const { frame, colorbar, layout } = narrow ? { ...LOOK, ...LOOK.narrow } : LOOK;
  const shown = rows.filter(({ values }) => values.macs && values.test_accuracy);
  const accuracies = shown.map((row) => mean(row, 'test_accuracy'));
  const rises = shown.map((row) => mean(row, 'rise'));
  const best = Math.max(0, ...accuracies);
  const low = accuracies.map((accuracy) => accuracy < best / 2);
  const lowest = Math.min(best, ...accuracies.filter((_, index) => !low[index]));
  const span = Math.max(best - lowest, LOOK.room.least);
  const range = [Math.max(0, lowest - LOOK.room.below * span), best + LOOK.room.above * span];
  const x = shown.map((row) => mean(row, 'macs'));
  const y = accuracies.map((accuracy, index) => (low[index] ? range[0] : accuracy));
  const names = shown.map(({ name }, index) => (low[index] ? `${name} ${(100 * accuracies[index]).toFixed(1)}%` : name));
  const sides = positions(x, y, names, range, frame);
  const trace = {
    type: 'scatter',
    mode: 'markers+text',
    cliponaxis: false,
    x,
    y,
    error_y: {
      ...LOOK.bars,
      type: 'data',
      array: shown.map(({ values }, index) => (low[index] ? 0 : values.test_accuracy.deviation ?? 0)),
    },
    text: names.map((name, index) => (sides[index] ? escaped(name) : '')),
    textposition: sides.map((side) => side ?? 'top center'),
    marker: {
      ...LOOK.marker,
      color: rises,
      cmin: 0,
      cmax: Math.max(LOOK.room.rise, ...rises.filter((_, index) => !low[index])),
      symbol: low.map((is) => LOOK.symbols[Number(is)]),
      colorscale: colourScale('loss'),
      colorbar,
    },
    customdata: shown.map(({ name }, index) => [accuracies[index], rises[index], escaped(name)]),
    hovertemplate: '<b>%{customdata[2]}</b><br>%{customdata[0]:.1%} test accuracy<br>%{x:.0%} of the multiply-adds'
      + '<br>rise to SGD %{customdata[1]:.3g} nats<extra></extra>',
  };
  const xaxis = { ...LOOK.xaxis, range: [0, LOOK.room.right] };
  return { data: [trace], layout: baseLayout(mode, { ...layout, xaxis, yaxis: { ...LOOK.yaxis, range } }) };
}

/** On which side of its point each name stands: where it covers least of the points and of the names before;
 * null where it would cover too much of them on every side. */
function positions(x, y, names, range, frame) {
  const places = x.map((across, index) => [
    (across / LOOK.room.right) * frame[0],
    ((range[1] - y[index]) / (range[1] - range[0])) * frame[1],
  ]);
  const taken = places.map(([left, top]) => [left - MARK, top - MARK, left + MARK, top + MARK]);
  return names.map((name, index) => {
    const boxes = Object.entries(POSITIONS).map(([position, side]) => ({ position, box: labelBox(places[index], name, side) }));
    const faults = boxes.map(({ box }) => outside(box, frame) + taken.reduce((sum, other, at) => sum + (at === index ? 0 : overlap(box, other)), 0));
    const least = Math.min(...faults);
    const { position, box } = boxes[faults.indexOf(least)];
    if (least > COVERED * area(box)) return null;
    taken.push(box);
    return position;
  });
}

function labelBox([x, y], name, [right, down]) {
  const [halfWidth, halfHeight] = [(name.length * CHARACTER) / 2, HEIGHT / 2];
  const [middle, centre] = [x + right * (halfWidth + MARK), y + down * (halfHeight + MARK)];
  return [middle - halfWidth, centre - halfHeight, middle + halfWidth, centre + halfHeight];
}

const overlap = (a, b) =>
  Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) * Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));

/** How much of a box lies outside the frame. */
const outside = (box, frame) => area(box) - overlap(box, [0, 0, ...frame]);

const area = (box) => (box[2] - box[0]) * (box[3] - box[1]);

/** The mean of a column; SGD itself has no rise to SGD. */
const mean = ({ values }, column) => values[column]?.mean ?? 0;
