/** Two or more experiments: surfaces on one colour scale, profiles and training overlaid, differences of their specs. */

import { badge } from '../components/badge.js';
import { dataTable } from '../components/data-table.js';
import { problem } from '../components/problem.js';
import { EXPERIMENTS, coloursOf } from '../colours.js';
import { element } from '../elements.js';
import { loss, percent } from '../format.js';
import { Cursor } from '../landscape/cursor.js';
import { Observed } from '../landscape/observed.js';
import { differences } from '../landscape/specs.js';
import { loadStyle } from '../landscape/stylesheet.js';
import { readView } from '../landscape/viewstate.js';
import { ComparisonPanel, sharedPlanes } from '../panels/comparison.js';
import { OverlayPanel } from '../panels/overlay.js';
import { Tooltip } from '../plots/cursor.js';
import { barrierText, fromJson } from '../plots/numbers.js';

const MOST = 6;

export default async function mount(root, context) {
  const page = element('div.page.compare', {}, element('h1', { tabIndex: -1 }, 'Compare'));
  root.append(page);
  document.title = 'Compare · Valleyscope';
  let shown = null;
  await open();
  return { update, unmount: () => shown?.close() };

  async function open() {
    const ids = idsOf(context.store.get());
    shown?.close();
    shown = null;
    if (ids.length < 2) {
      page.replaceChildren(
        element('h1', { tabIndex: -1 }, 'Compare'),
        element(
          'p',
          {},
          'Choose two or more experiments in the ',
          element('a', { href: '/' }, 'list'),
          ' to compare them.',
        ),
      );
      return;
    }
    const observed = ids.map((id) => new Observed(context.api, id));
    try {
      await Promise.all([loadStyle(), ...observed.map((one) => one.open())]);
      shown = new CompareView(page, observed, context, ids.join());
      shown.update(context.store.get());
    } catch (error) {
      observed.forEach((one) => one.close());
      page.replaceChildren(
        element('h1', { tabIndex: -1 }, 'These experiments cannot be compared'),
        problem(error),
        element('p', {}, element('a', { href: '/' }, 'All experiments')),
      );
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

class CompareView {
  constructor(page, observed, context, key) {
    this.key = key;
    this.context = context;
    this.tooltip = new Tooltip();
    const names = observed.map(({ experiment }) => experiment.name);
    this.members = observed.map((one, index) => ({
      observed: one,
      label:
        names.indexOf(names[index]) === names.lastIndexOf(names[index])
          ? names[index]
          : `${names[index]} ${String.fromCharCode(65 + index)}`,
      color: EXPERIMENTS[index],
      colours: coloursOf(one.experiment.minima),
      cursor: new Cursor(),
    }));
    const shared = { ...context, tooltip: this.tooltip };
    this.surfaces = new ComparisonPanel(this.members, shared);
    this.overlay = new OverlayPanel(this.members, shared);
    this.verdicts = element('div');
    this.metrics = element('div');
    this.specs = element('div');
    const panel = (title, place) => element('section.panel', {}, element('h2', {}, title), place);
    page.replaceChildren(
      element(
        'div.head',
        {},
        element('h1', { tabIndex: -1 }, `Compare ${this.members.map(({ label }) => label).join(' · ')}`),
      ),
      panel('Verdicts', this.verdicts),
      this.surfaces.node,
      this.overlay.node,
      panel('Minima', this.metrics),
      panel('Differences of the specs', this.specs),
      this.tooltip.node,
    );
    this.redraw = () => this.update(context.store.get());
    context.theme.addEventListener('change', this.redraw);
    for (const one of observed) one.addEventListener('change', this.redraw);
  }

  update(query) {
    this.view = readView(query, sharedPlanes(this.members));
    this.surfaces.update(this.view);
    this.overlay.update(this.view);
    this.#drawTables();
  }

  close() {
    this.context.theme.removeEventListener('change', this.redraw);
    for (const { observed } of this.members) {
      observed.removeEventListener('change', this.redraw);
      observed.close();
    }
    this.surfaces.close();
    this.overlay.close();
  }

  #drawTables() {
    const named = ({ label, color, observed }) =>
      element(
        'a.named',
        { href: `/experiments/${observed.id}` },
        element('i.dot', { style: `background:${color}` }),
        label,
      );
    const barrier = (values) =>
      values
        ? `${barrierText(fromJson(values.barrier))} (${barrierText(fromJson(values.low))} to ${barrierText(fromJson(values.high))})`
        : '–';
    this.verdicts.replaceChildren(
      dataTable({
        caption: 'verdicts',
        columns: [
          { title: 'experiment' },
          { title: 'verdict' },
          ...['line, nats', 'curve, nats', 'control’s line, nats'].map((title) => ({ title, number: true })),
        ],
        rows: this.members.map((member) => {
          const { verdict, experiment } = member.observed;
          return [
            named(member),
            badge(verdict?.kind ?? experiment.state),
            barrier(verdict?.line),
            barrier(verdict?.curve),
            barrier(verdict?.control?.line),
          ];
        }),
      }),
    );
    this.metrics.replaceChildren(
      dataTable({
        caption: 'minima of all experiments',
        columns: [
          { title: 'minimum' },
          { title: 'experiment' },
          ...['train loss', 'test loss', 'test accuracy', 'sparsity', 'zero groups'].map((title) => ({
            title,
            number: true,
          })),
        ],
        rows: this.members.flatMap((member) =>
          member.observed.runs.map(({ name, final }) => [
            name,
            named(member),
            loss(final.train_loss),
            loss(final.test_loss),
            percent(final.test_accuracy),
            percent(final.sparsity),
            percent(final.zero_groups),
          ]),
        ),
      }),
    );
    const found = differences(this.members.map(({ observed }) => observed.experiment.spec));
    const text = (value) => (value === undefined ? 'default' : JSON.stringify(value));
    this.specs.replaceChildren(
      found.length
        ? dataTable({
            caption: 'differences of the specs',
            columns: [{ title: 'field' }, ...this.members.map(({ label }) => ({ title: label }))],
            rows: found.map(({ path, values }) => [element('code', {}, path), ...values.map(text)]),
          })
        : element('p.soft', {}, 'The specs are the same.'),
    );
  }
}
