/** The view of one experiment: verdict, surfaces, profiles, minima, training and provenance, updated live. */

import { coloursOf } from '../colours.js';
import { confirmDialog } from '../components/confirm-dialog.js';
import { shareDialog } from '../components/share-dialog.js';
import { showToast, toastErrors } from '../components/toasts.js';
import { errorPage } from '../components/problem.js';
import { element } from '../elements.js';
import { noticeSwitch, tellEnd } from '../end-notice.js';
import { Cursor } from '../landscape/path-cursor.js';
import { LiveExperiment } from '../landscape/live-experiment.js';
import { SHOWN, pairOf, readView } from '../landscape/view-state.js';
import { AddPlane } from '../panels/add-plane.js';
import { Downloads } from '../panels/downloads.js';
import { ensemblesPanel } from '../panels/ensembles.js';
import { forksPanel } from '../panels/forks.js';
import { methodsPanel } from '../panels/methods.js';
import { CompactPanel } from '../panels/compact.js';
import { CurvaturePanel } from '../panels/curvature.js';
import { ExperimentHeading } from '../panels/experiment-heading.js';
import { FittingPanel } from '../panels/fits.js';
import { MinimaMapPanel } from '../panels/minima-map.js';
import { MatrixPanel } from '../panels/matrix.js';
import { MinimaPanel, SparsityPanel, TrainingPanel } from '../panels/minima.js';
import { ProfilesPanel } from '../panels/profiles.js';
import { ProvenancePanel } from '../panels/provenance.js';
import { SurfacesPanel } from '../panels/surfaces.js';
import { VerdictPanel, stateText } from '../panels/verdict.js';
import { loadPlotly } from '../plotly.js';
import { Tooltip } from '../plots/cursor.js';
import { paperFigure, surfacesFigure, rendered } from '../plots/export.js';
import { showLossUnit } from '../plots/loss-unit.js';

export default async function mount(root, context) {
  const page = element('div.page.experiment', { 'aria-busy': 'true' }, element('h1', { tabIndex: -1 }, 'Experiment'));
  root.append(page);
  loadPlotly();
  const live = new LiveExperiment(context.api, context.params.id, { readOnly: context.readOnly });
  try {
    await live.open();
  } catch (error) {
    live.close();
    const words = error.status === 404 ? 'Experiment not found' : 'This experiment could not be loaded';
    page.replaceChildren(...errorPage(words, error));
    return {};
  }
  const view = new ExperimentView(page, live, context);
  return { update: (query) => view.update(query), unmount: () => view.close() };
}

/** Files of other tools have no spec to begin with. */
const canVary = ({ spec: { imported } }) => !imported || Boolean(imported.dataset);

class ExperimentView {
  constructor(page, live, context) {
    const { experiment } = live;
    this.live = live;
    this.context = context;
    this.tooltip = new Tooltip();
    this.colours = coloursOf(experiment.minima);
    const shared = { ...context, cursor: new Cursor(), tooltip: this.tooltip, colours: this.colours };
    this.verdict = new VerdictPanel(live);
    this.surfaces = new SurfacesPanel([{ live, ...shared }], shared);
    this.addPlane = new AddPlane(live, context, (plane) => context.urlState.push({ plane }));
    this.profiles = new ProfilesPanel(live, shared);
    this.methods = methodsPanel(live, shared);
    this.forks = forksPanel(live, shared);
    this.ensembles = ensemblesPanel(live, shared);
    this.matrix = new MatrixPanel(live, shared);
    this.map = new MinimaMapPanel(live, shared, (pair) => this.#openPair(pair));
    this.minima = new MinimaPanel(live, shared);
    this.compact = new CompactPanel(live, shared);
    this.curvature = new CurvaturePanel(live, shared);
    this.sparsity = new SparsityPanel(live, shared);
    this.training = new TrainingPanel(live, shared);
    this.fits = new FittingPanel(live, shared);
    this.downloads = new Downloads(live, context.api, {
      picture: (format) => this.picture(format),
      name: () => `${this.view.plane}-${this.view.show}`,
    });
    this.provenance = new ProvenancePanel(live, this.downloads.file);
    this.heading = new ExperimentHeading(live, context.api, !context.readOnly && experiment.origin !== 'gallery');
    this.notices = context.readOnly ? null : noticeSwitch();
    this.state = element('span.soft.state');
    this.actions = element('div.row');
    page.replaceChildren(
      element('div.head', {},
        this.heading.node,
        this.state,
        this.notices,
        this.actions,
        context.readOnly || !canVary(experiment) ? null : element('a.button', { href: `/new?from=${live.id}`, title: 'Start a new experiment from this spec' }, 'Vary'),
        this.downloads.node,
        context.readOnly ? null : element('button', { type: 'button', onclick: () => shareDialog(context.api, experiment) }, 'Share')),
      this.verdict.node,
      this.surfaces.node,
      this.profiles.node,
      this.forks.node,
      this.methods.node,
      this.matrix.node,
      this.map.node,
      this.addPlane.node,
      this.minima.node,
      this.sparsity.node,
      this.ensembles.node,
      this.compact.node,
      this.curvature.node,
      this.training.node,
      this.fits.node,
      this.provenance.node,
      this.tooltip.node,
    );
    page.removeAttribute('aria-busy');
    this.page = page;
    this.onchange = ({ detail }) => this.draw(detail.parts);
    this.ontheme = () => this.update(context.urlState.get());
    live.addEventListener('change', this.onchange);
    live.addEventListener('problem', ({ detail }) => showToast(detail.message, { bad: true }));
    context.theme.addEventListener('change', this.ontheme);
    this.update(context.urlState.get());
    this.draw(new Set(['experiment', 'verdict', 'minima']));
  }

  /** Redraw what depends on the URL or the theme. */
  update(query) {
    showLossUnit(this.live.lossUnit);
    const pair = pairOf(query, this.live.experiment.minima);
    this.live.judge(pair);
    if (pair && pair.join() !== this.pairOffered) this.addPlane.choose(pair);
    this.pairOffered = pair?.join();
    this.view = readView(query, this.live.planeOrder, this.live.splits, this.live.hasErrors);
    this.page.dataset.show = SHOWN[this.view.show].panes.length > 1 ? 'pair' : 'single';
    this.surfaces.update(this.view);
    this.profiles.update(this.view);
    this.matrix.update(this.view);
    this.training.update(this.view);
    this.fits.update(this.view);
    this.sparsity.draw();
    this.methods.draw();
    this.forks.draw();
    this.map.draw();
    this.curvature.draw();
  }

  /** Redraw the parts that changed. */
  draw(parts) {
    showLossUnit(this.live.lossUnit);
    if (parts.has('experiment')) this.#drawHead();
    if (parts.has('experiment')) this.addPlane.draw();
    if (parts.has('experiment') || parts.has('verdict') || parts.has('minima')) this.verdict.draw();
    if (parts.has('experiment') || parts.has('minima') || parts.has('verdict')) this.minima.draw();
    if (parts.has('minima')) this.compact.draw();
    if (parts.has('curvature')) {
      this.curvature.draw();
      this.minima.draw();
    }
    // Panels that wait for numbers must know when the experiment ended.
    const turned = this.live.active !== this.wasActive;
    this.wasActive = this.live.active;
    if (parts.has('minima') || turned) {
      this.training.draw();
      this.sparsity.draw();
    }
    if (parts.has('paths') || parts.has('minima') || turned) toastErrors(() => Promise.all([this.methods.load(), this.forks.load(), this.ensembles.load(), this.#loadMap()]));
    if (parts.has('fits') || parts.has('paths') || turned) this.fits.draw();
    this.#putStageFirst();
    if (parts.has('experiment')) this.provenance.draw();
    if (parts.has('matrix')) this.matrix.draw();
    // Another claim has another first plane, and other paths first.
    if (parts.has('verdict')) return this.update(this.context.urlState.get());
    if (parts.has('paths') || turned) this.profiles.draw();
    if ([`plane ${this.view.plane}`, 'paths'].some((part) => parts.has(part))) this.surfaces.draw();
  }

  /** Judge two minima everywhere, and show their profile. */
  #openPair(pair) {
    this.matrix.choose(pair);
    this.profiles.node.scrollIntoView({ block: 'center' });
  }

  /** The map also tells the matrix its order by clusters. */
  async #loadMap() {
    await this.map.load();
    this.matrix.setOrder(this.map.found?.order ?? null);
  }

  /** While it runs, the panel of the stage that runs stands first; in the end all are in their usual place. */
  #putStageFirst() {
    const { active, experiment } = this.live;
    const first = active ? ({ queued: this.training, minima: this.training, curves: this.fits }[experiment.stage] ?? null) : null;
    if (first === this.stageFirst) return;
    this.stageFirst = first;
    const focused = document.activeElement;
    for (const panel of [this.training, this.fits])
      (panel === first ? this.surfaces : this.provenance).node.before(panel.node);
    if (focused !== document.activeElement) focused.focus({ preventScroll: true });
  }

  /** The plots on screen as one picture. */
  async picture(format) {
    const plane = this.live.planes.get(this.view.plane);
    const { mode } = this.context.theme;
    const { views } = this.surfaces;
    const figure =
      this.view.form === '3d'
        ? surfacesFigure(plane, views, mode)
        : paperFigure(plane, views, this.profiles.shown, { mode, log: this.view.profileLog });
    return rendered(figure, format);
  }

  close() {
    this.live.removeEventListener('change', this.onchange);
    this.context.theme.removeEventListener('change', this.ontheme);
    this.live.close();
    this.downloads.close();
    for (const panel of [this.surfaces, this.profiles, this.training, this.fits, this.sparsity, this.methods, this.forks, this.map, this.curvature]) panel.close();
  }

  #drawHead() {
    const { experiment } = this.live;
    this.heading.draw();
    if (this.notices) this.notices.hidden = !this.live.active;
    if (!this.shownState || this.live.active) document.title = `${experiment.name} · Valleyscope`;
    this.state.textContent = experiment.state === 'failed' ? 'failed' : stateText(experiment);
    if (experiment.state === this.shownState) return;
    if (this.shownState) {
      this.context.announce(`${experiment.name}: ${stateText(experiment)}`);
      if (!this.live.active) tellEnd(experiment, this.context.navigate);
    }
    this.shownState = experiment.state;
    if (!this.context.readOnly) this.#showAction(this.live.active ? 'Cancel' : experiment.state === 'done' ? null : 'Retry');
  }

  /** The button is replaced only when its action changes: a new one would lose focus and a click in progress. */
  #showAction(words) {
    if (words === this.actionShown) return;
    this.actionShown = words;
    const action = () => (words === 'Cancel' ? this.#cancel() : this.#post('retry'));
    this.actions.replaceChildren(...(words ? [element('button', { type: 'button', onclick: action }, words)] : []));
  }

  async #cancel() {
    const { name } = this.live.experiment;
    const sure = await confirmDialog({
      title: `Cancel ${name}?`,
      text: 'Results so far are kept. You can retry from there.',
      action: 'Cancel it',
    });
    if (sure) await this.#post('cancel');
  }

  #post(action) {
    return toastErrors(async () => {
      await this.context.api.post(`/api/experiments/${this.live.id}/${action}`);
      await this.live.refresh();
      if (action === 'retry') this.live.follow();
    });
  }
}
