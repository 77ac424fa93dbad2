/** The data of one experiment, updated while it runs. Fires `change` with `detail.parts`, and `problem`. */

import { fromJson } from '../plots/numbers.js';
import { claimOf } from './claim.js';
import { Plane, decoded } from './plane.js';
import { each, minimumOf, pathOf } from './records.js';

const REFRESH_DELAY = 1500;
const BATCH_DELAY = 120;
const ACTIVE = ['queued', 'running'];

export class LiveExperiment extends EventTarget {
  experiment = null;
  verdict = null;
  /** @type {Map<string, Plane>} */
  planes = new Map();
  minima = {};
  /** Minima in training, by name. */
  inTraining = {};
  curves = {};
  lines = {};
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
  #parts = new Set();
  #closing = new AbortController();
  #unfollow = () => {};
  #refreshing = null;
  #timers = {};

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
    return this.experiment.spec.splits ?? ['train', 'test'];
  }

  /** Minima in the order of the spec, trained or in training. */
  get runs() {
    return this.experiment.minima.flatMap((name) => this.minima[name] ?? this.inTraining[name] ?? []);
  }

  /** Curves first, then the straight lines. */
  get paths() {
    return [...Object.values(this.curves), ...Object.values(this.lines)];
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

  async #load() {
    const wasActive = this.active;
    [this.experiment, { items: this.files }, this.contents] = await Promise.all([
      this.#get(''),
      this.#get('/files'),
      this.#get('/contents'),
    ]);
    this.#changed('experiment');
    const jobs = [this.#loadWorkers()];
    if (this.files.some(({ name }) => name === 'landscape.h5')) {
      jobs.push(this.#loadMinima(), this.#loadPaths());
      for (const name of this.experiment.planes) {
        const stale = !this.planes.has(name) || (wasActive && !this.active);
        if (stale && name in this.contents.planes) jobs.push(this.#loadPlane(name));
      }
      if (this.experiment.verdict_kind !== null && (!this.verdict || wasActive)) jobs.push(this.#loadVerdict());
    }
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
    const { curves, lines } = await this.#get('/profile');
    this.curves = each(curves, pathOf);
    this.lines = each(lines, pathOf);
    this.#changed('paths');
  }

  async #loadVerdict() {
    try {
      this.verdict = await this.#get('/verdict');
      this.#changed('verdict');
    } catch (error) {
      if (error.status !== 404) throw error;
    }
  }

  /** All quantities of a plane; a plane that is not computed yet is skipped. */
  async #loadPlane(name) {
    const { splits } = this;
    const ask = (split, value) => `/surface?plane=${encodeURIComponent(name)}&split=${split}&value=${value}`;
    try {
      const first = await this.#get(ask(splits[0], 'loss'));
      const plane = this.planes.get(name) ?? new Plane(first);
      plane.merge(splits[0], 'loss', decoded(first.z), decoded(first.done));
      const others = splits.flatMap((split) => ['loss', 'error'].map((value) => [split, value])).slice(1);
      const answers = await Promise.all(others.map(([split, value]) => this.#binary(ask(split, value))));
      answers.forEach(({ z, done }, index) => plane.merge(...others[index], z, done));
      plane.markDone(
        answers.reduce((both, { done }) => both.map((known, index) => known & done[index]), decoded(first.done)),
      );
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
    else if (kind === 'progress' && 'progress' in data) {
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
      this.#changed(`plane ${tile.plane}`);
      return;
    }
    this.#tiles.set(tile.plane, [...(this.#tiles.get(tile.plane) ?? []), tile]);
    this.#schedule('refresh', REFRESH_DELAY, () => this.refresh());
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

  #binary(path) {
    return this.#api.binary(this.#path + path, { signal: this.#closing.signal });
  }
}
