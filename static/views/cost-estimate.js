import { element, icon } from '../elements.js';
import { duration, plainPrecision, counted } from '../format.js';
import { dataTable } from '../components/data-table.js';
import { coloursOf } from '../colours.js';

const STAGES = { minima: 'training', curves: 'curves', surfaces: 'surfaces', profiles: 'profiles', curvature: 'curvature' };

/**
 * The cost of an experiment, and how far AltSDP's threshold will get.
 * @param {object} cost the response of /api/estimate
 * @param {string[]} minima names of all minima, for their colours
 */
export function costEstimate(cost, minima) {
  const colours = coloursOf(minima);
  return element('div.cost', {},
    element('dl.pairs', {},
      fact('on this service', cost.service.hours === null ? 'no workers' : about(cost.service.hours)),
      fact('on one core', about(cost.core_hours)),
      fact('on one GPU', about(cost.gpu_hours)),
      fact('parameters', cost.parameters === null ? '–' : cost.parameters.toLocaleString('en'))),
    dataTable({
      caption: 'Cost by stage, on one core',
      text: ['stage'],
      numbers: ['one core'],
      rows: Object.entries(cost.stages).map(([name, stage]) => [
        name === 'profiles' && cost.lines ? `profiles, ${counted(cost.lines, 'line')}` : (STAGES[name] ?? name),
        about(stage.core_hours),
      ]),
    }),
    Object.entries(cost.minima).map(([name, reach]) => thresholdForecast(name, reach, colours[name])),
    element('p.hint', { title: cost.rule }, 'Accurate to a factor of two or three. More cores share the work.'),
    cost.notes.map((note) => element('p.hint', {}, note)));
}

/** Whether the accumulated threshold G will exceed the initial norms of the groups. */
function thresholdForecast(name, { c, reach, smallest_norm: smallest, median_norm: median, prunes }, colour) {
  const number = (value) => (typeof value === 'number' ? plainPrecision(value, 3) : value === null ? '–' : '∞');
  const tone = prunes === null ? 'soft' : prunes ? 'good' : 'warn';
  const forecast = prunes === null
    ? 'The initial norms of the groups are not known.'
    : prunes
      ? 'G exceeds the smallest initial norm: groups will become zero.'
      : 'G stays below the smallest initial norm: nothing will become zero. Raise c, target or the epochs.';
  return element('div.reach', { 'data-minimum': name },
    element('h3', {}, element('span.dot', { style: `background:${colour}` }), `Threshold of ${name}`),
    scale(Number(reach), smallest, median),
    element('dl.pairs', {},
      fact('G at the end', number(reach)), fact('smallest norm', number(smallest)), fact('median norm', number(median)), fact('c', number(c))),
    element('p', { class: `forecast ${tone}` }, icon(prunes === null ? 'question' : prunes ? 'check' : 'cross'), forecast));
}

/** G as a bar, with marks at the smallest and the median norm of the groups before training. */
function scale(reach, smallest, median) {
  if (smallest === null || median === null) return null;
  const end = 1.15 * Math.max(Number.isFinite(reach) ? reach : 0, median);
  const place = (value) => `${Math.min(100, (100 * value) / end)}%`;
  return element('div.scale', { 'aria-hidden': 'true' },
    element('div.filled', { style: `width:${place(Number.isFinite(reach) ? reach : end)}` }),
    element('div.norm', { style: `left:${place(smallest)}`, title: 'smallest initial norm' }),
    element('div.norm', { style: `left:${place(median)}`, title: 'median initial norm' }));
}

const fact = (name, value) => element('div', {}, element('dt', {}, name), element('dd', {}, value));

/** Hours as text. */
function about(hours) {
  const seconds = 3600 * hours;
  if (seconds < 1) return '< 1 s';
  if (hours < 48) return duration(seconds < 90 ? seconds : Math.round(seconds / 60) * 60).replace(' 00 s', '');
  return counted(Math.round(hours / 24), 'day');
}
