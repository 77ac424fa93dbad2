/** The choices of the short form, as changes of a spec. What they do not concern stays as it is. */

/** The share of the groups that AltSDP makes zero. */
export const PRUNING = { none: null, some: 0.3, half: 0.6, most: 0.8 };

export const QUALITY = {
  draft: { epochs: 20, curveEpochs: 5, resolution: 15, points: 21 },
  normal: { epochs: 120, curveEpochs: 30, resolution: 41, points: 61 },
  fine: { epochs: 240, curveEpochs: 60, resolution: 81, points: 121 },
};

const DEFAULTS = QUALITY.normal;
const all = (entries, field, usual, wanted) => Object.values(entries ?? {}).every((entry) => (entry[field] ?? usual) === wanted);

/** The minimum that is pruned, by name. */
export const prunedMinimum = ({ minima = {}, training = {} }) =>
  Object.keys(minima).find((name) => (
    minima[name].method ?? minima[name].optimizer ?? (minima[name].checkpoint ? '' : training.method ?? training.optimizer)) === 'altsdp');

/** @returns {'none' | 'some' | 'half' | 'most' | 'custom'} */
export function pruningOf(values) {
  const name = prunedMinimum(values);
  if (!name) return 'none';
  const { c, target, sparsity } = values.minima[name];
  const share = sparsity ?? (c === undefined && target === undefined ? values.training?.sparsity : undefined);
  return Object.keys(PRUNING).find((level) => PRUNING[level] !== null && PRUNING[level] === share) ?? 'custom';
}

/** @returns {'draft' | 'normal' | 'fine' | 'custom'} */
export function qualityOf(values) {
  const fits = ({ epochs, curveEpochs, resolution, points }) =>
    (values.training?.epochs ?? DEFAULTS.epochs) === epochs
    && Object.values(values.minima ?? {}).every((minimum) => minimum.epochs === undefined)
    && all(values.curves ?? { usual: {} }, 'epochs', DEFAULTS.curveEpochs, curveEpochs)
    && all(values.planes ?? { usual: {} }, 'resolution', DEFAULTS.resolution, resolution)
    && (values.points ?? DEFAULTS.points) === points;
  return Object.keys(QUALITY).find((level) => fits(QUALITY[level])) ?? 'custom';
}

/** Sets how much is pruned. `none` compares two networks from different seeds. */
export function setPruning(values, level) {
  const name = prunedMinimum(values);
  if (level === 'none') {
    if (!name) return;
    delete values.minima[name];
    if (Object.keys(values.minima).length < 2) values.minima[name === 'other' ? 'second' : 'other'] = { seed: (values.seed ?? 0) + 5 };
    givePaths(values);
    return;
  }
  const sparsity = PRUNING[level];
  if (name) {
    const { c, target, macs, ...kept } = values.minima[name];
    values.minima[name] = { ...kept, sparsity };
  } else {
    const [first, ...rest] = Object.entries(values.minima);
    values.minima = Object.fromEntries([first, ['altsdp', { optimizer: 'altsdp', sparsity }], ...rest]);
    givePaths(values);
  }
}

export function setQuality(values, level) {
  const { epochs, curveEpochs, resolution, points } = QUALITY[level];
  values.training = { ...values.training, epochs };
  for (const minimum of Object.values(values.minima)) delete minimum.epochs;
  if (!values.curves || !values.planes) givePaths(values, { keep: true });
  for (const curve of Object.values(values.curves)) curve.epochs = curveEpochs;
  for (const plane of Object.values(values.planes)) plane.resolution = resolution;
  if (points === DEFAULTS.points) delete values.points;
  else values.points = points;
}

/**
 * Gives the spec the curves and planes that compare its first two minima with its third, as finely as before.
 * @param {{keep?: boolean}} [options] keep: leave what is given
 */
function givePaths(values, { keep = false } = {}) {
  const [start, end, control] = Object.keys(values.minima);
  const { epochs = DEFAULTS.curveEpochs } = Object.values(values.curves ?? {})[0] ?? {};
  const { resolution = DEFAULTS.resolution } = Object.values(values.planes ?? {})[0] ?? {};
  if (!keep) delete values.verdict?.between;
  if (!keep || !values.curves) {
    values.curves = end ? { valley: { from: start, to: end, epochs } } : {};
    if (control) values.curves.contrast = { from: start, to: control, epochs };
  }
  if (keep && values.planes) return;
  const [curve] = Object.entries(values.curves).filter(([, { from, to }]) => [from, to].sort().join() === [start, end].sort().join());
  values.planes = end ? {} : { around: { around: start, resolution } };
  if (curve) values.planes.valley = { through: [start, end, `${curve[0]}.bend${curve[1].bends > 1 ? '1' : ''}`], resolution };
  if (control) values.planes.basins = { through: [start, end, control], resolution };
}
