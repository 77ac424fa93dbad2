/** Compares experiments: surfaces on one colour scale, profiles and training overlaid, spec differences. */

import { badge } from '../components/badge.js';
import { dataTable } from '../components/data-table.js';
import { errorPage } from '../components/problem.js';
import { EXPERIMENTS, coloursOf } from '../colours.js';
import { colouredName, element } from '../elements.js';
import { DASH, percent } from '../format.js';
import { Cursor } from '../landscape/path-cursor.js';
import { LiveExperiment } from '../landscape/live-experiment.js';
import { differences } from '../landscape/spec-differences.js';
import { readView } from '../landscape/view-state.js';
import { ComparedCurvesPanel } from '../panels/compared-curves.js';
import { SurfacesPanel, sharedPlanes } from '../panels/surfaces.js';
import { METRICS, metricsOf } from '../panels/tables.js';
import { inLossUnit, showLossUnit } from '../plots/loss-unit.js';
import { Tooltip } from '../plots/cursor.js';
import { barrierText, fromJson, intervalText } from '../plots/numbers.js';

const MOST = 6;

export default async function mount(root, context) {
  const page = element('div.page.compare', {}, element('h1', { tabIndex: -1 }, 'Compare'));
  root.append(page);
  document.title = 'Compare · Valleyscope';
  let shown = null;
  await open();
  return { update, unmount: () => shown?.close() };

  async function open() {
    const ids = idsOf(context.urlState.get());
    shown?.close();
    shown = null;
    if (ids.length < 2) {
      page.replaceChildren(
        element('h1', { tabIndex: -1 }, 'Compare'),
        element('p', {},
          'Choose two or more experiments in the ',
          element('a', { href: '/' }, 'list'),
          ' to compare them.'),
      );
      return;
    }
    const live = ids.map((id) => new LiveExperiment(context.api, id));
    try {
      await Promise.all(live.map((one) => one.open()));
      shown = new CompareView(page, live, context, ids.join());
      shown.update(context.urlState.get());
    } catch (error) {
      live.forEach((one) => one.close());
      page.replaceChildren(...errorPage('These experiments could not be compared', error));
    }
  }

  function update(query) {
    if (shown && shown.key === idsOf(query).join()) shown.update(query);
    else open();
  }
}

function idsOf(query) {
  return [...new Set((query.ids ?? '').split(',').filter(Boolean))].slice(0, MOST);
}

/** A number of nats over its interval; a verdict without a curve has neither. */
function estimate(value, bounds) {
  if (value === undefined || value === null) return DASH;
  const { low, high } = bounds ?? {};
  const interval = intervalText(low, high);
  return element('span.estimate', {}, barrierText(fromJson(value)), interval && element('small.soft', {}, interval));
}

class CompareView {
  constructor(page, live, context, key) {
    this.key = key;
    this.context = context;
    this.tooltip = new Tooltip();
    const names = live.map(({ experiment }) => experiment.name);
    this.members = live.map((one, index) => ({
      live: one,
      label:
        names.indexOf(names[index]) === names.lastIndexOf(names[index])
          ? names[index]
          : `${names[index]} ${String.fromCharCode(65 + index)}`,
      color: EXPERIMENTS[index],
      colours: coloursOf(one.experiment.minima),
      cursor: new Cursor(),
    }));
    const shared = { ...context, tooltip: this.tooltip };
    this.surfaces = new SurfacesPanel(this.members, shared);
    this.overlay = new ComparedCurvesPanel(this.members, shared);
    this.verdicts = element('div');
    this.metrics = element('div');
    this.specs = element('div');
    const panel = (title, place) => element('section.panel', {}, element('h2', {}, title), place);
    page.replaceChildren(
      element('div.head', {},
        element('h1', { tabIndex: -1 }, `Compare ${this.members.map(({ label }) => label).join(' · ')}`)),
      panel('Verdicts', this.verdicts),
      this.surfaces.node,
      this.overlay.node,
      panel('Minima', this.metrics),
      panel('Spec differences', this.specs),
      this.tooltip.node,
    );
    this.redraw = () => this.update(context.urlState.get());
    context.theme.addEventListener('change', this.redraw);
    for (const one of live) one.addEventListener('change', this.redraw);
  }

  update(query) {
    const units = new Set(this.members.map(({ live }) => live.lossUnit));
    showLossUnit(units.size === 1 ? [...units][0] : '');
    this.view = readView(query, sharedPlanes(this.members));
    this.surfaces.update(this.view);
    this.overlay.update(this.view);
    this.#drawTables();
  }

  close() {
    this.context.theme.removeEventListener('change', this.redraw);
    for (const { live } of this.members) {
      live.removeEventListener('change', this.redraw);
      live.close();
    }
    this.surfaces.close();
    this.overlay.close();
  }

  #drawTables() {
    const named = ({ label, color, live }) =>
      element('a', { href: `/experiments/${live.id}` }, colouredName(color, label));
    this.verdicts.replaceChildren(
      dataTable({
        caption: 'verdicts',
        stacked: true,
        text: ['experiment', 'verdict'],
        numbers: [inLossUnit('rise'), inLossUnit('barrier'), 'curve’s barrier', 'control’s barrier', 'zero groups', 'accuracy'],
        rows: this.members.map((member) => {
          const { verdict, experiment } = member.live;
          return [
            named(member),
            badge(verdict?.kind ?? experiment.state),
            estimate(verdict?.line?.rise?.value, verdict?.line?.rise),
            estimate(verdict?.line?.barrier, verdict?.line),
            estimate(verdict?.curve?.barrier, verdict?.curve),
            estimate(verdict?.control?.line?.barrier, verdict?.control?.line),
            percent(experiment.zero_groups),
            percent(experiment.accuracy),
          ];
        }),
      }),
    );
    this.metrics.replaceChildren(
      dataTable({
        caption: 'minima of all experiments',
        stacked: true,
        text: ['minimum', 'experiment'],
        numbers: METRICS,
        rows: this.members.flatMap((member) =>
          member.live.runs.map(({ name, final }) => [name, named(member), ...metricsOf(final)]),
        ),
      }),
    );
    const found = differences(this.members.map(({ live }) => live.experiment.resolved));
    const text = (value) => (value === undefined || value === null ? '–' : typeof value === 'string' ? value : JSON.stringify(value));
    this.specs.replaceChildren(
      found.length
        ? dataTable({
            caption: 'differences of the specs',
            text: ['field', ...this.members.map(({ label }) => label)],
            rows: found.map(({ path, values }) => [element('code', {}, path), ...values.map(text)]),
          })
        : element('p.soft', {}, 'The specs are the same.'),
    );
  }
}
