/** Sets of minima as one: the members, the network of their mean weights, and their mean prediction. */

import { dataTable } from '../components/data-table.js';
import { loss, percent } from '../format.js';
import { ResultsTable } from './results-table.js';

export const ensemblesPanel = (live, shared) => new ResultsTable(live, shared, {
  path: 'ensembles',
  title: 'Averages and ensembles',
  note: 'BatchNorm statistics of the mean of the weights are computed for it.',
  expected: ({ experiment }) => experiment.spec.ensembles,
  more: ({ items }) => items.map((set) => dataTable(setTable(set))),
});

function setTable({ name, members, average, ensemble }) {
  const splits = Object.keys(average);
  const row = (title, scores) => [title, ...splits.flatMap((split) => {
    const { loss: value, error } = scores[split];
    return [loss(value), error === null ? '–' : percent(1 - error)];
  })];
  return {
    caption: `set ${name}`,
    text: [name],
    numbers: splits.flatMap((split) => [`${split} loss`, `${split} accuracy`]),
    rows: [
      ...members.map((member) => row(member.name, member.scores)),
      row('mean of the weights', average),
      row('mean of the predictions', ensemble),
    ],
  };
}
