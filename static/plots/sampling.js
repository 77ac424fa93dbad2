// Values of a surface between its grid points, and what is known of a grid that is half computed.

const COARSEST_INTERVALS = 8;

/** Bilinear interpolation at (x, y); NaN outside the grid and beside points that are not computed.
 *
 * With `encode` the encoded values are interpolated, as a surface on that scale is drawn.
 */
export function sample(plane, values, x, y, encode = (value) => value) {
  const { columns, rows } = plane;
  if (!(x >= plane.x[0] && x <= plane.x[columns - 1] && y >= plane.y[0] && y <= plane.y[rows - 1])) return NaN;
  const column = Math.min(below(plane.x, x), columns - 2);
  const row = Math.min(below(plane.y, y), rows - 2);
  const right = (x - plane.x[column]) / (plane.x[column + 1] - plane.x[column]);
  const up = (y - plane.y[row]) / (plane.y[row + 1] - plane.y[row]);
  const corners = [
    [(1 - up) * (1 - right), row * columns + column],
    [(1 - up) * right, row * columns + column + 1],
    [up * (1 - right), (row + 1) * columns + column],
    [up * right, (row + 1) * columns + column + 1],
  ];
  // A corner without weight must not spoil the sum: 0 times infinity is NaN.
  return corners.reduce((sum, [weight, index]) => (weight > 0 ? sum + weight * encode(values[index]) : sum), 0);
}

/** The index of the grid line at or before a coordinate. */
export function below(axis, coordinate) {
  let low = 0;
  let high = axis.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (axis[middle] <= coordinate) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The index of the grid line nearest to a coordinate. */
export function nearest(axis, coordinate) {
  const index = Math.min(below(axis, coordinate), axis.length - 2);
  return coordinate - axis[index] <= axis[index + 1] - coordinate ? index : index + 1;
}

export function isBend(name) {
  return name === 'bend' || name.slice(name.lastIndexOf('.') + 1).startsWith('bend');
}

/** The segments between the minima that span the plane: {start, end, x, y}, with as many points as a profile has. */
export function straightLines(plane, points = 61) {
  const ends = plane.defining.filter((name) => !isBend(name) && name in plane.points);
  return ends.flatMap((start, index) =>
    ends.slice(index + 1).map((end) => {
      const [from, to] = [plane.points[start], plane.points[end]];
      const along = (axis) =>
        Float64Array.from({ length: points }, (_, n) => (1 - n / (points - 1)) * from[axis] + (n / (points - 1)) * to[axis]);
      return { start, end, x: along(0), y: along(1) };
    }),
  );
}

/** Rows and columns of a sub-grid that is computed everywhere and no coarser than the first pass, or null. */
export function coarseLattice({ done, rows, columns }) {
  const known = (row, column) => done[row * columns + column] === 1;
  let down = range(rows).filter((row) => known(row, 0) && known(row, columns - 1));
  let across = range(columns).filter((column) => known(0, column) && known(rows - 1, column));
  while (down.length > 1 && across.length > 1) {
    const inRows = down.map((row) => across.filter((column) => !known(row, column)).length / across.length);
    const inColumns = across.map((column) => down.filter((row) => !known(row, column)).length / down.length);
    const [worstRow, worstColumn] = [Math.max(...inRows), Math.max(...inColumns)];
    if (worstRow === 0) return isDense(down, rows) && isDense(across, columns) ? { rows: down, columns: across } : null;
    if (worstRow >= worstColumn) down = down.filter((_, index) => inRows[index] < worstRow);
    else across = across.filter((_, index) => inColumns[index] < worstColumn);
  }
  return null;
}

export function range(length, step = 1) {
  return Array.from({ length: Math.ceil(length / step) }, (_, index) => index * step);
}

/** Whether the indices reach from end to end in steps no longer than those of the first pass. */
function isDense(indices, length) {
  const longest = Math.ceil((length - 1) / COARSEST_INTERVALS);
  const steps = indices.slice(1).map((index, position) => index - indices[position]);
  return indices[0] === 0 && indices.at(-1) === length - 1 && Math.max(...steps) <= longest;
}
