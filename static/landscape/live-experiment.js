/** The data of one experiment, updated while it runs. Fires `change` with `detail.parts`, and `problem`. */

import { fromJson } from '../plots/numbers.js';
import { claimOf, planesInOrder } from './claim.js';
import { Plane } from './plane.js';
import { curvatureOf, each, minimumOf, pathOf } from './records.js';

const REFRESH_DELAY = 1500;
const BATCH_DELAY = 120;
const ACTIVE = ['queued', 'running'];

export class LiveExperiment extends EventTarget {
  experiment = null;
  /** The verdict of the experiment, on the pair of its spec. */
  ownVerdict = null;
  /** The two minima that the user chose instead, or null. */
  pair = null;
  /** Barrier and rise between every two minima, as /matrix sends them; null with fewer than three, or before a line. */
  matrix = null;
  /** The curvature of minima by name; null where the spec asks for none. */
  curvature = null;
  /** @type {Map<string, Plane>} */
  planes = new Map();
  minima = {};
  /** Minima in training, by name. */
  inTraining = {};
  /** Curves that are being fitted, by name: the epoch and the loss of the last batch. */
  fitting = {};
  /** Hessian products done and expected, by the task that needs them. */
  products = {};
  curves = {};
  lines = {};
  /** Straight lines to minima with their hidden units in the order of the first. */
  aligned = [];
  files = [];
  /** The response of /contents: planes, provenance, workers and warnings. */
  contents = { planes: {}, provenance: {}, workers: [], warnings: [] };
  /** Workers that run a task of this experiment now. */
  workers = [];
  /** Whether the server has any worker. */
  hasWorkers = true;
  #api;
  #path;
  #readOnly;
  #tiles = new Map();
  #fits = {};
  #parts = new Set();
  #closing = new AbortController();
  #unfollow = () => {};
  #refreshing = null;
  #timers = {};
  #pairVerdict = null;
  /** Name, tags and note as they were changed here last. */
  #description = {};

  /** @param {{readOnly?: boolean}} [options] readOnly: by a link that shows nothing but this experiment */
  constructor(api, id, { readOnly = false } = {}) {
    super();
    this.#readOnly = readOnly;
    this.#api = api;
    this.#path = `/api/experiments/${encodeURIComponent(id)}`;
    this.id = id;
  }

  get active() {
    return ACTIVE.includes(this.experiment?.state);
  }

  get splits() {
    const { spec } = this.experiment;
    return spec.imported?.splits ?? spec.splits ?? ['train', 'test'];
  }

  /** The unit of losses: nats, or none. */
  get lossUnit() {
    const [plane] = this.planes.values();
    const [path] = this.paths;
    return plane?.lossUnit ?? path?.loss_unit ?? (hasOwnUnit(this.experiment) ? '' : 'nats');
  }

  /** Whether there are errors to show; losses such as mse have none. */
  get hasErrors() {
    const planes = [...this.planes.values()];
    if (planes.some(({ computed }) => computed)) return planes.some(({ quantities }) => quantities.some(([, value]) => value === 'error'));
    if (planes.length && !this.active) return false; // such as recorded runs, whose losses nobody computed
    if (this.paths.length) return this.paths.some(({ error }) => Object.values(error).some((list) => list.some(Number.isFinite)));
    return !hasOwnUnit(this.experiment);
  }

  /** Minima in the order of the spec, trained or in training. */
  get runs() {
    return this.experiment.minima.flatMap((name) => this.minima[name] ?? this.inTraining[name] ?? []);
  }

  /** Curves first, then the straight lines. */
  get paths() {
    return [...Object.values(this.curves), ...Object.values(this.lines)];
  }

  /** The curves of the spec, as paths without values. */
  get expectedCurves() {
    const specs = Object.entries(this.experiment.resolved?.curves ?? {});
    return specs.map(([name, { kind, from, to }]) => ({ name, kind, start: from, end: to, fit: {} }));
  }

  /** Curves with the epochs of their fit so far: from the landscape, or from the events of an unfinished experiment. */
  get fits() {
    const known = Object.values(this.curves).filter(({ fit }) => fit.epoch?.length);
    const others = this.expectedCurves.filter(({ name }) => !known.some((path) => path.name === name));
    const live = others.flatMap((path) => (this.#fits[path.name] ? { ...path, fit: this.#fits[path.name] } : []));
    return [...known, ...live];
  }

  /** The verdict on the chosen pair; without one, that of the experiment. */
  get verdict() {
    return this.#pairVerdict ?? this.ownVerdict;
  }

  /** The planes, those first that show the claim about the chosen pair. */
  get planeOrder() {
    const { planes } = this.experiment;
    if (!this.#pairVerdict) return planes; // the server's order is that of the experiment's own pair
    const through = Object.fromEntries(planes.map((name) => [name, this.planes.get(name)?.defining ?? []]));
    return planesInOrder(through, this.verdict.between, this.verdict.control?.name);
  }

  /** What the verdict claims, as pictures show it; null without a verdict. */
  get claim() {
    return claimOf(this.verdict, this.paths);
  }

  /** Load what there is, then follow the experiment until it ends. */
  async open() {
    await this.refresh();
    // The partial results of an unfinished experiment are in its events.
    if (this.experiment.state !== 'done') this.follow();
  }

  /** Judge this pair of minima, or with null the experiment's own. */
  async judge(pair) {
    if (pair?.join() === this.pair?.join()) return;
    this.pair = pair;
    if (!pair) {
      this.#pairVerdict = null;
      this.#changed('verdict');
      return;
    }
    try {
      await this.#loadPairVerdict();
    } catch (error) {
      if (this.pair === pair) this.#pairVerdict = null;
      this.#onError(error);
    }
  }

  follow() {
    this.#unfollow();
    this.#unfollow = this.#api.events(this.id, { follow: this.active, onEvent: (event) => this.#onEvent(event) });
  }

  close() {
    this.#closing.abort();
    this.#unfollow();
    Object.values(this.#timers).forEach(clearTimeout);
  }

  /** Reload from the server, one reload at a time. */
  async refresh() {
    while (this.#refreshing) await this.#refreshing;
    this.#refreshing = this.#load().finally(() => (this.#refreshing = null));
    return this.#refreshing;
  }

  /** Take over a name, tags and a note that were changed here. */
  describe({ name, tags, note }) {
    this.#description = { name, tags, note };
    this.experiment = { ...this.experiment, ...this.#description };
    this.#changed('experiment');
  }

  async #load() {
    const wasActive = this.active;
    const before = this.#description;
    [this.experiment, { items: this.files }, this.contents] = await Promise.all([
      this.#get(''),
      this.#get('/files'),
      this.#get('/contents'),
    ]);
    // An answer that was asked for before the change has the old description.
    if (before !== this.#description) this.experiment = { ...this.experiment, ...this.#description };
    this.#changed('experiment');
    const jobs = [this.#loadWorkers()];
    if (this.files.some(({ name }) => name === 'landscape.h5')) {
      jobs.push(this.#loadMinima(), this.#loadPaths());
      for (const name of this.experiment.planes) {
        const stale = !this.planes.has(name) || (wasActive && !this.active);
        if (stale && name in this.contents.planes) jobs.push(this.#loadPlane(name));
      }
      if (this.experiment.verdict_kind !== null && (!this.ownVerdict || wasActive)) jobs.push(this.#loadVerdict());
      if (this.experiment.minima.length > 2 && this.contents.lines.length) jobs.push(this.#loadMatrix());
    }
    if (this.contents.curvature?.length) jobs.push(this.#loadCurvature());
    await Promise.all(jobs);
    if (this.#tiles.size) this.#schedule('refresh', REFRESH_DELAY, () => this.refresh());
  }

  async #loadWorkers() {
    const { items } = this.active && !this.#readOnly ? await this.#api.get('/api/workers', { signal: this.#closing.signal }) : { items: [] };
    if (this.active && !this.#readOnly) this.hasWorkers = items.length > 0;
    this.workers = items.filter(({ experiment }) => experiment === this.id);
    this.#changed('experiment');
  }

  async #loadMinima() {
    const { minima } = await this.#get('/minima');
    this.minima = each(minima, minimumOf);
    this.#changed('minima');
  }

  async #loadPaths() {
    const { curves, lines, aligned = {} } = await this.#get('/profile');
    this.curves = each(curves, pathOf);
    this.lines = each(lines, pathOf);
    this.aligned = Object.values(aligned).map((path) => ({ ...pathOf(path), name: `${path.name} aligned`, kind: 'aligned' }));
    this.#changed('paths');
  }

  async #loadVerdict() {
    try {
      this.ownVerdict = await this.#get('/verdict');
      this.#changed('verdict');
      if (this.pair) await this.#loadPairVerdict(); // by now with intervals
    } catch (error) {
      if (error.status !== 404) throw error;
    }
  }

  async #loadPairVerdict() {
    const { pair } = this;
    const found = await this.#get(`/verdict?between=${pair.map(encodeURIComponent).join()}`);
    if (this.pair !== pair) return; // another one was chosen meanwhile
    this.#pairVerdict = found;
    this.#changed('verdict');
  }

  async #loadMatrix() {
    this.matrix = await this.#get('/matrix');
    this.#changed('matrix');
  }

  async #loadCurvature() {
    const { minima } = await this.#get('/curvature');
    this.curvature = each(minima, curvatureOf);
    this.#changed('curvature');
  }

  /** All quantities of a plane; a plane that is not computed yet is skipped. */
  async #loadPlane(name) {
    try {
      const answer = await this.#get(`/planes/${encodeURIComponent(name)}`);
      const plane = this.planes.get(name) ?? new Plane(answer);
      plane.take(answer);
      for (const tile of this.#tiles.get(name) ?? []) plane.addTile(tile);
      this.#tiles.delete(name);
      this.planes.set(name, plane);
      this.#changed(`plane ${name}`);
    } catch (error) {
      if (error.status !== 404) throw error;
    }
  }

  #onEvent({ kind, data }) {
    if (kind === 'tile') this.#addTile(data);
    else if (kind === 'epoch') this.#addEpoch(data);
    else if (kind === 'curve') this.#addFit(data);
    else if (kind === 'progress' && 'products' in data) {
      this.products[data.working] = data;
      this.#changed('experiment');
    } else if (kind === 'progress' && 'progress' in data) {
      this.experiment = { ...this.experiment, ...data };
      this.#changed('experiment');
    }
    if (kind === 'state' || kind === 'verdict' || kind === 'warning' || (kind === 'progress' && 'task' in data))
      this.#schedule('refresh', REFRESH_DELAY, () => this.refresh());
  }

  #addTile(tile) {
    const plane = this.planes.get(tile.plane);
    if (plane) {
      plane.addTile(tile);
      if (tile.estimate) plane.estimate = tile.estimate;
      this.#changed(`plane ${tile.plane}`);
      return;
    }
    this.#tiles.set(tile.plane, [...(this.#tiles.get(tile.plane) ?? []), tile]);
    this.#schedule('refresh', REFRESH_DELAY, () => this.refresh());
  }

  #addFit({ curve, share, epochs, epoch, loss, record }) {
    if (record) {
      const { bends, ...columns } = record;
      bends.forEach((distance, index) => (columns[`bend${index + 1}`] = distance));
      const fit = (this.#fits[curve] ??= {});
      if (record.epoch <= (fit.epoch?.at(-1) ?? 0)) return;
      for (const [column, value] of Object.entries(columns)) (fit[column] ??= []).push(fromJson(value));
    } else if (share === 1) delete this.fitting[curve];
    else this.fitting[curve] = { epoch, epochs, loss: fromJson(loss) };
    this.#changed('fits');
  }

  #addEpoch({ minimum, epochs: _total, ...record }) {
    if (this.minima[minimum]) return;
    const run = (this.inTraining[minimum] ??= {
      name: minimum,
      optimizer: '',
      epochs: { epoch: [] },
      layers: [],
      final: {},
      settings: {},
    });
    const known = run.epochs.epoch.length;
    if (record.epoch <= (run.epochs.epoch.at(-1) ?? 0)) return;
    for (const [column, value] of Object.entries(record)) {
      if (typeof value === 'object' && value !== null) continue;
      (run.epochs[column] ??= new Array(known).fill(NaN))[known] = fromJson(value);
      run.final[column] = fromJson(value);
    }
    this.#changed('minima');
  }

  /** Fire `change` for all parts that changed within a short time. */
  #changed(part) {
    this.#parts.add(part);
    this.#schedule('tell', BATCH_DELAY, () => {
      const parts = this.#parts;
      this.#parts = new Set();
      this.dispatchEvent(new CustomEvent('change', { detail: { parts } }));
    });
  }

  #schedule(name, milliseconds, action) {
    this.#timers[name] ??= setTimeout(() => {
      this.#timers[name] = null;
      Promise.resolve(action()).catch((error) => this.#onError(error));
    }, milliseconds);
  }

  #onError(error) {
    if (!this.#closing.signal.aborted) this.dispatchEvent(new CustomEvent('problem', { detail: error }));
  }

  #get(path) {
    return this.#api.get(this.#path + path, { signal: this.#closing.signal });
  }
}

const hasOwnUnit = ({ spec } = {}) => ['mse', 'l1'].includes(spec?.loss);
