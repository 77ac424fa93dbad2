/** One experiment: verdict, surfaces, profile, minima, training and provenance, all linked and live. */

import { coloursOf } from '../colours.js';
import { confirm } from '../components/confirm.js';
import { notify } from '../components/notices.js';
import { problem } from '../components/problem.js';
import { element } from '../elements.js';
import { Cursor } from '../landscape/cursor.js';
import { Observed } from '../landscape/observed.js';
import { loadStyle } from '../landscape/stylesheet.js';
import { SHOWN, readView } from '../landscape/viewstate.js';
import { Downloads } from '../panels/downloads.js';
import { MinimaPanel, SparsityPanel, TrainingPanel } from '../panels/minima.js';
import { ProfilesPanel } from '../panels/profiles.js';
import { ProvenancePanel } from '../panels/provenance.js';
import { SurfacesPanel } from '../panels/surfaces.js';
import { VerdictPanel, factsOf, stateText } from '../panels/verdict.js';
import { loadPlotly } from '../plotly.js';
import { Tooltip } from '../plots/cursor.js';
import { paperFigure, surfacesFigure, rendered } from '../plots/export.js';

export default async function mount(root, context) {
  const page = element('div.page.experiment', { 'aria-busy': 'true' }, element('h1', { tabIndex: -1 }, 'Experiment'));
  root.append(page);
  loadPlotly();
  const observed = new Observed(context.api, context.params.id);
  try {
    await Promise.all([observed.open(), loadStyle()]);
  } catch (error) {
    observed.close();
    const words = error.status === 404 ? 'There is no such experiment' : 'This experiment cannot be shown';
    page.replaceChildren(
      element('h1', { tabIndex: -1 }, words),
      problem(error),
      element('p', {}, element('a', { href: '/' }, 'All experiments')),
    );
    return {};
  }
  const view = new ExperimentView(page, observed, context);
  return { update: (query) => view.update(query), unmount: () => view.close() };
}

class ExperimentView {
  constructor(page, observed, context) {
    const { experiment } = observed;
    this.observed = observed;
    this.context = context;
    this.tooltip = new Tooltip();
    this.colours = coloursOf(experiment.minima);
    const shared = { ...context, cursor: new Cursor(), tooltip: this.tooltip, colours: this.colours };
    this.verdict = new VerdictPanel(observed);
    this.surfaces = new SurfacesPanel(observed, shared);
    this.profiles = new ProfilesPanel(observed, shared);
    this.minima = new MinimaPanel(observed, shared);
    this.sparsity = new SparsityPanel(observed, shared);
    this.training = new TrainingPanel(observed, shared);
    this.downloads = new Downloads(observed, context.api, {
      picture: (format) => this.picture(format),
      name: () => `${this.view.plane}-${this.view.show}`,
    });
    this.provenance = new ProvenancePanel(observed, this.downloads.file);
    this.state = element('span.soft.state');
    this.actions = element('div.row');
    document.title = `${experiment.name} · Valleyscope`;
    page.replaceChildren(
      element(
        'div.head',
        {},
        element(
          'div',
          {},
          element('h1', { tabIndex: -1 }, experiment.name),
          element('p.soft', {}, factsOf(experiment)),
        ),
        this.state,
        this.actions,
        element('a.button', { href: `/new?from=${observed.id}`, title: 'Its spec in the form, to be changed' }, 'Vary'),
        this.downloads.node,
        element('button', { type: 'button', onclick: () => this.share() }, 'Share'),
      ),
      this.verdict.node,
      this.surfaces.node,
      this.profiles.node,
      this.minima.node,
      this.sparsity.node,
      this.training.node,
      this.provenance.node,
      this.tooltip.node,
    );
    page.removeAttribute('aria-busy');
    this.page = page;
    this.onchange = ({ detail }) => this.draw(detail.parts);
    this.ontheme = () => this.update(context.store.get());
    observed.addEventListener('change', this.onchange);
    observed.addEventListener('problem', ({ detail }) => notify(detail.message, { bad: true }));
    context.theme.addEventListener('change', this.ontheme);
    this.update(context.store.get());
    this.draw(new Set(['experiment', 'verdict', 'minima']));
  }

  /** Everything that depends on the address or on the theme. */
  update(query) {
    this.view = readView(query, this.observed.experiment.planes);
    this.page.dataset.show = SHOWN[this.view.show].panes.length > 1 ? 'pair' : 'single';
    this.surfaces.update(this.view);
    this.profiles.update(this.view);
    this.training.update(this.view);
    this.sparsity.draw();
  }

  /** The parts that are new. */
  draw(parts) {
    if (parts.has('experiment')) this.#drawHead();
    if (parts.has('experiment') || parts.has('verdict') || parts.has('minima')) this.verdict.draw();
    if (parts.has('experiment') || parts.has('minima') || parts.has('verdict')) this.minima.draw();
    // What waits for its numbers must know when there will be none.
    const turned = this.observed.active !== this.wasActive;
    this.wasActive = this.observed.active;
    if (parts.has('minima') || turned) {
      this.training.draw();
      this.sparsity.draw();
    }
    if (parts.has('paths') || turned) this.profiles.draw();
    if (parts.has('experiment')) this.provenance.draw();
    if (parts.has(`plane ${this.view.plane}`)) this.surfaces.draw();
  }

  /** What is on screen, as one picture. */
  async picture(format) {
    const plane = this.observed.planes.get(this.view.plane);
    const { mode } = this.context.theme;
    const views = SHOWN[this.view.show].panes.map(([split, value]) => ({
      split,
      value,
      mode,
      log: this.view.log,
      clip: value === 'loss' ? this.view.clip : this.view.errorClip,
      zoom: this.view.zoom,
      camera: this.view.camera,
      colours: this.colours,
    }));
    const figure =
      this.view.form === '3d'
        ? surfacesFigure(plane, views, mode)
        : paperFigure(plane, views, this.profiles.shown, { mode, log: this.view.profileLog });
    return rendered(figure, format);
  }

  async share() {
    try {
      await navigator.clipboard.writeText(location.href);
      notify('The address of this view is copied: it shows what you see now.');
    } catch {
      notify(`The address of this view: ${location.href}`);
    }
  }

  close() {
    this.observed.removeEventListener('change', this.onchange);
    this.context.theme.removeEventListener('change', this.ontheme);
    this.observed.close();
    this.downloads.close();
    for (const panel of [this.surfaces, this.profiles, this.training, this.sparsity]) panel.close();
  }

  #drawHead() {
    const { experiment } = this.observed;
    this.state.textContent = experiment.state === 'failed' ? 'failed' : stateText(experiment);
    if (experiment.state === this.shownState) return;
    if (this.shownState) this.context.announce(`${experiment.name}: ${stateText(experiment)}`);
    this.shownState = experiment.state;
    this.#offer(this.observed.active ? 'Cancel' : experiment.state === 'done' ? null : 'Retry');
  }

  /** A button stays while it is offered: one that is replaced loses its focus, and a click that has begun on it. */
  #offer(words) {
    if (words === this.offered) return;
    this.offered = words;
    const action = () => (words === 'Cancel' ? this.#cancel() : this.#order('retry'));
    this.actions.replaceChildren(...(words ? [element('button', { type: 'button', onclick: action }, words)] : []));
  }

  async #cancel() {
    const { name } = this.observed.experiment;
    const sure = await confirm({
      title: `Cancel ${name}?`,
      text: 'What is computed stays, and it can be retried from there.',
      action: 'Cancel it',
    });
    if (sure) await this.#order('cancel');
  }

  async #order(what) {
    try {
      await this.context.api.post(`/api/experiments/${this.observed.id}/${what}`);
      await this.observed.refresh();
      if (what === 'retry') this.observed.follow();
    } catch (error) {
      notify(error.message, { bad: true });
    }
  }
}
