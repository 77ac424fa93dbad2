// Accuracy of pruned networks over the multiply-adds that they keep, coloured by the rise of the loss from SGD to them.

import { baseLayout, escaped, style } from './theme.js';

const LOOK = style.pareto;

/** A figure {data, layout} of the rows with accuracy and multiply-adds; a bar is the standard deviation over seeds. */
export function paretoFigure(rows, { mode }) {
  const shown = rows.filter(({ values }) => values.macs && values.test_accuracy);
  const rises = shown.map((row) => mean(row, 'rise'));
  const trace = {
    type: 'scatter',
    mode: 'markers+text',
    x: shown.map((row) => mean(row, 'macs')),
    y: shown.map((row) => mean(row, 'test_accuracy')),
    error_y: {
      type: 'data',
      array: shown.map(({ values }) => values.test_accuracy.deviation ?? 0),
      thickness: 1,
      width: 0,
    },
    text: shown.map(({ name }) => escaped(name)),
    ...LOOK.text,
    marker: { ...LOOK.marker, color: rises, cmin: 0, colorbar: LOOK.colorbar },
    customdata: rises,
    hovertemplate: '<b>%{text}</b><br>%{y:.1%} test accuracy<br>%{x:.0%} of the multiply-adds'
      + '<br>rise to SGD %{customdata:.3g} nats<extra></extra>',
  };
  return { data: [trace], layout: baseLayout(mode, { ...LOOK.layout, xaxis: LOOK.xaxis, yaxis: LOOK.yaxis }) };
}

/** The mean of a column; SGD itself has no rise to SGD. */
const mean = ({ values }, column) => values[column]?.mean ?? 0;
