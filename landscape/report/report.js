// Draws the figures of the report with the modules of the dashboard, which the import map holds.

import { claimOf } from 'landscape/claim.js';
import { Plane } from 'landscape/plane.js';
import { curvatureOf, each, minimumOf, pathOf } from 'landscape/records.js';
import { contourFigure } from 'plots/contour.js';
import { forksFigure } from 'plots/forks.js';
import { cutsFigure, factorsFigure, flatnessFigure, growthFigure, spectrumFigure, theoremFigure } from 'plots/curvature.js';
import { minimaMapFigure } from 'plots/minima-map.js';
import { paretoFigure } from 'plots/pareto.js';
import { profileEntries, profilePairFigure } from 'plots/profile.js';
import { sparsityFigure } from 'plots/sparsity.js';
import { surfaceFigure } from 'plots/surface3d.js';
import { NARROW, sizeOf, style } from 'plots/theme.js';
import { trainingFigure } from 'plots/training.js';

const data = JSON.parse(document.getElementById('data').textContent);
const { colours, errorSplit } = data;
const planes = each(data.planes, Plane.whole);
const minima = data.minima.map(minimumOf);
const paths = data.paths.map(pathOf);
const claim = claimOf(data.verdict, paths.filter(({ kind }) => kind !== 'aligned'));
const entries = profileEntries(paths, colours);
const runs = minima.map(({ name, epochs }) => ({ label: name, epochs, color: colours[name] }));
const curved = Object.entries(each(data.curvature, curvatureOf)).map(([name, summary]) => ({ name, color: colours[name], summary }));
const directed = curved.filter(({ summary }) => summary.directions);
const curvatureOfMinimum = (minimum) => curved.find(({ name }) => name === minimum).summary;
const config = { ...style.config, responsive: false };
const MODE_BAR = 28;
const dark = matchMedia('(prefers-color-scheme: dark)');

// What a place for a figure says of it, and how it is shown: {data, layout, height, shape}.
const FIGURES = {
  contour({ plane, split, value }, view) {
    const figure = contourFigure(planes[plane], { ...view, split, value, log: false, claim, colours });
    // The mode bar appears above the frame, so that it covers no tick of the colour bar.
    if (!view.narrow) figure.layout.margin.t += MODE_BAR;
    return figure;
  },
  surface3d({ plane, split, value }, view) {
    const height = Math.min(480, view.room);
    return { ...surfaceFigure(planes[plane], { ...view, split, value, log: false, claim, colours }), height };
  },
  profile(_, view) {
    // The legend needs a line for each path where the page is narrow.
    return { ...profilePairFigure(entries, { ...view, splits: ['train', errorSplit] }), height: view.narrow ? 560 : 460 };
  },
  sparsity: (_, view) => sparsityFigure(minima, { ...view, colours }),
  map: ({ by }, { mode, room }) => minimaMapFigure(data.map, { kind: by, colours, mode, room }),
  forks: (_, { mode }) => forksFigure(data.forks, { mode }),
  pareto: (_, view) => paretoFigure(data.methods, view),
  spectrum: (_, view) => spectrumFigure(curved, view),
  growth: (_, view) => growthFigure(curved.filter(({ summary }) => summary.epochs.epoch?.length), view),
  factors: (_, view) => factorsFigure(directed, view),
  cuts: (_, view) => cutsFigure(directed, view),
  flatness: ({ minimum }, view) => flatnessFigure(curvatureOfMinimum(minimum).directions, view),
  theorem: ({ minimum, run }, view) => theoremFigure(curvatureOfMinimum(minimum).trials[run], view),
  training({ quantities }, view) {
    return trainingFigure(runs, { ...view, quantities: quantities.split(' '), log: true });
  },
};

function draw() {
  const mode = dark.matches && !document.body.classList.contains('sheet') ? 'dark' : 'light';
  for (const plot of document.querySelectorAll('.plot')) {
    plot.style.width = '100%';
    const room = plot.clientWidth;
    const narrow = room < NARROW;
    const { data: traces, layout, height, shape } = FIGURES[plot.dataset.kind](plot.dataset, { room, narrow, mode, hover: true });
    const size = sizeOf(room, { ...layout, height: height ?? layout.height }, shape);
    plot.style.width = `${size.width}px`;
    plot.style.height = `${size.height}px`;
    // What plotly.js keeps of a standing colour bar spoils the margins of a lying one.
    const make = plot.dataset.narrow === String(narrow) ? Plotly.react : Plotly.newPlot;
    plot.dataset.narrow = String(narrow);
    make(plot, traces, { ...layout, ...size, autosize: false }, { ...config, displayModeBar: narrow ? false : 'hover' });
  }
}

let waiting;
let lastWidth = 0;
new ResizeObserver(([entry]) => {
  const width = Math.round(entry.contentRect.width);
  if (width === lastWidth) return;
  lastWidth = width;
  clearTimeout(waiting);
  waiting = setTimeout(draw, 60);
}).observe(document.querySelector('main'));

dark.addEventListener('change', draw);

// Plots do not shrink with the sheet: for print the page is laid out at one width, which the style sheet scales to paper.
addEventListener('beforeprint', () => {
  document.body.classList.add('sheet');
  draw();
});
addEventListener('afterprint', () => {
  document.body.classList.remove('sheet');
  draw();
});
