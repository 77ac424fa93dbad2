// A plane of an experiment: its grid, the values computed so far, and the coordinates of named points and paths.

export class Plane {
  /** @param answer the JSON of a plane: its grid, points and paths */
  constructor(answer) {
    this.name = answer.plane;
    this.kind = answer.kind;
    this.unit = answer.unit;
    this.lossUnit = answer.loss_unit ?? 'nats';
    this.note = answer.note;
    /** Where x and y lead, if more is known than the kind. */
    this.axes = answer.axes ?? [];
    this.x = decoded(answer.x);
    this.y = decoded(answer.y);
    this.rows = this.y.length;
    this.columns = this.x.length;
    this.points = answer.points;
    this.distances = answer.distances;
    this.defining = answer.defining;
    this.paths = Object.fromEntries(
      Object.entries(answer.paths).map(([name, pairs]) => [name, columnsOf(decoded(pairs))]),
    );
    this.explained = answer.explained ?? null;
    this.offsets = Object.fromEntries(Object.entries(answer.offsets ?? {}).map(([name, values]) => [name, decoded(values)]));
    this.done = new Uint8Array(this.rows * this.columns);
    this.computed = 0;
    this.grids = new Map();
    this.estimate = {};
  }

  /** A plane with all its values at once: `grids` has an array for each "split quantity" that was recorded. */
  static whole(answer) {
    const plane = new Plane(answer);
    plane.take(answer);
    return plane;
  }

  /** Take over the computed values; those from tiles stay elsewhere. */
  take(answer) {
    const done = decoded(answer.done);
    for (const [key, values] of Object.entries(answer.grids)) this.merge(...key.split(' '), decoded(values), done);
    this.markDone(done);
    this.estimate = answer.estimate ?? {};
  }

  get extent() {
    return [this.x[this.columns - 1] - this.x[0], this.y[this.rows - 1] - this.y[0]];
  }

  get complete() {
    return this.computed === this.done.length;
  }

  /** The quantities that were recorded, as [split, quantity]. */
  get quantities() {
    return [...this.grids.keys()].map((key) => key.split(' ')).filter(([, quantity]) => !quantity.endsWith('_error'));
  }

  /** Whether values have standard errors. */
  get isEstimated() {
    return [...this.grids.keys()].some((key) => key.endsWith('_error'));
  }

  has(split, quantity) {
    return this.grids.has(`${split} ${quantity}`);
  }

  /** The values of a quantity, row by row; NaN where not computed. */
  grid(split, quantity) {
    const key = `${split} ${quantity}`;
    if (!this.grids.has(key)) this.grids.set(key, new Float64Array(this.done.length).fill(NaN));
    return this.grids.get(key);
  }

  /** Whether a named point lies visibly off the plane: by more than a hundredth of its width. */
  isProjected(name) {
    return (this.distances[name] ?? 0) > 0.01 * Math.max(...this.extent);
  }

  /** Add the values of a quantity where they are computed. */
  merge(split, quantity, values, done) {
    if (quantity === 'error' && neverRecorded(values, done)) return null;
    const grid = this.grid(split, quantity);
    for (let index = 0; index < grid.length; index++) if (done[index]) grid[index] = values[index];
    return grid;
  }

  /** Mark points as computed once all their quantities are there. */
  markDone(done) {
    for (let index = 0; index < done.length; index++) if (done[index]) this.#mark(index);
  }

  /** Add a tile: rows and columns with one entry a point, values by split and quantity. */
  addTile({ rows, columns, values }) {
    for (const [split, quantities] of Object.entries(values)) {
      for (const [quantity, list] of Object.entries(quantities)) {
        if (quantity === 'error' && list.every((value) => Number.isNaN(Number(value)))) continue;
        const grid = this.grid(split, quantity);
        list.forEach((value, n) => (grid[rows[n] * this.columns + columns[n]] = Number(value)));
      }
    }
    rows.forEach((row, n) => this.#mark(row * this.columns + columns[n]));
  }

  #mark(index) {
    this.computed += 1 - this.done[index];
    this.done[index] = 1;
  }
}

/** A loss without a notion of error leaves NaN where points are computed. */
function neverRecorded(values, done) {
  return done.some(Boolean) && values.every((value, index) => !done[index] || Number.isNaN(value));
}

/** An array as the API sends it in JSON: its type, base64 of its little-endian bytes. */
export function decoded({ dtype, bdata }) {
  const text = atob(bdata);
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < bytes.length; index++) bytes[index] = text.charCodeAt(index);
  return dtype === 'u1' ? bytes : new Float64Array(bytes.buffer);
}

/** Places as the API sends them, x and y in turn. */
function columnsOf(pairs) {
  return { x: pairs.filter((_, n) => n % 2 === 0), y: pairs.filter((_, n) => n % 2 === 1) };
}
