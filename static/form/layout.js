/** Which fields the form shows first. All others are under "More". */

export const SECTIONS = [
  ['Experiment', ['name', 'dataset', 'model', 'loss', 'seed']],
  ['Training', ['training']],
  ['Minima', ['minima']],
  ['Curves', ['curves']],
  ['Planes', ['planes']],
  ['Curvature', ['curvature']],
  ['Evaluation and verdict', ['splits', 'batch_norm', 'precision', 'samples', 'points', 'verdict']],
];

/** Fields of a submission that are not part of the spec; they are beside the button. */
export const NOT_IN_SPEC = ['force', 'priority'];

const PRUNING = ['sparsity', 'macs', 'mode', 'mu', 'c', 'target', 'structure'];
/** Fields of optimisers; of your own, its options. */
const OF_OPTIMIZER = { sgd: [], altsdp: PRUNING, adamw: ['lr', 'betas', 'weight_decay'], sam: ['rho'] };
const FIRST = {
  Training: () => ['epochs', 'batch_size', 'lr', 'schedule', 'momentum', 'weight_decay'],
  Minimum: ({ optimizer, method, checkpoint }, properties) => {
    if (checkpoint) return ['checkpoint'];
    const options = properties.method?.options?.[method] ?? [];
    if (method) return ['method', 'sparsity', 'macs', 'of', ...options.filter((name) => name !== 'retrain'), 'seed', ...options.filter((name) => name === 'retrain')];
    return ['method', 'optimizer', 'seed', 'checkpoint', ...(optimizer ? OF_OPTIMIZER[optimizer] ?? ['lr', 'options'] : [])];
  },
  Curve: () => ['from', 'to', 'kind', 'epochs'],
  Plane: ({ through, around, trajectory }) => [
    ...(through ? ['through'] : around ? ['around', 'directions'] : trajectory ? ['trajectory'] : ['through', 'around', 'trajectory']),
    'resolution', 'margin',
  ],
  Curvature: () => ['minima', 'top', 'density', 'directions', 'samples', 'cut'],
  Judgement: () => ['tolerance', 'control'],
};

/**
 * The fields of an object that are shown at once, in order.
 * @param {string} title of its schema
 * @param {object} values what is given
 * @param {object} properties of its schema; `method` has the options of each method
 */
export const firstFields = (title, values, properties = {}) => FIRST[title]?.(values, properties) ?? [];
