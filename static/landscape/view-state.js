/** The state of the experiment view, read from and written to the query string. */

export const SHOWN = {
  pair: { title: 'train loss and test error', panes: [['train', 'loss'], ['test', 'error']] },
  'train-pair': { title: 'train loss and train error', panes: [['train', 'loss'], ['train', 'error']] },
  'test-pair': { title: 'test loss and test error', panes: [['test', 'loss'], ['test', 'error']] },
  'train-loss': { title: 'train loss', panes: [['train', 'loss']] },
  'test-error': { title: 'test error', panes: [['test', 'error']] },
  'test-loss': { title: 'test loss', panes: [['test', 'loss']] },
  'train-error': { title: 'train error', panes: [['train', 'error']] },
};

/** What is shown unless the address says otherwise: files of other tools may lack a split. */
function usual(splits, hasErrors) {
  if (!hasErrors) return splits.includes('train') ? 'train-loss' : 'test-loss';
  if (splits.includes('train')) return splits.includes('test') ? 'pair' : 'train-pair';
  return 'test-pair';
}

/** The query as typed values; invalid ones are ignored. */
export function readView(query, planes, splits = ['train', 'test'], hasErrors = true) {
  const known = query.show in SHOWN
    && SHOWN[query.show].panes.every(([split, value]) => splits.includes(split) && (value === 'loss' || hasErrors));
  return {
    plane: planes.includes(query.plane) ? query.plane : (planes[0] ?? null),
    show: known ? query.show : usual(splits, hasErrors),
    form: query.form === '3d' ? '3d' : 'contour',
    log: query.log === '1',
    clip: positive(query.clip),
    errorClip: positive(query.eclip),
    zoom: zoomOf(numbers(query.zoom, 4)),
    camera: cameraOf(numbers(query.camera, 3)),
    profileLog: query.plog === '1',
    trainingLog: query.tlog !== '0',
    fitLog: query.flog !== '0',
    t: shareOf(query.t),
    along: query.along ?? null,
    matrix: query.matrix === 'rise' ? 'rise' : 'barrier',
    allPaths: query.paths === 'all',
    hidden: new Set((query.hide ?? '').split(',').filter(Boolean)),
  };
}

/** The pair of minima in the query, if both are there; else null. */
export function pairOf(query, minima) {
  const names = (query.pair ?? '').split(',');
  const valid = names.length === 2 && names[0] !== names[1] && names.every((name) => minima.includes(name));
  return valid ? names : null;
}

export const zoomText = ({ x, y }) => [...x, ...y].map(short).join(',');

export const cameraText = ({ x, y, z }) => [x, y, z].map(short).join(',');

/** The range of flat axes after a zoom by hand, or null for an event of another kind. */
export function zoomedTo(event, { xaxis, yaxis }) {
  const moved = Object.keys(event).some((key) => /^[xy]axis\.range/.test(key));
  return moved ? { x: [...xaxis.range], y: [...yaxis.range] } : null;
}

function positive(text) {
  const value = Number(text);
  return Number.isFinite(value) && value > 0 ? value : null;
}

function shareOf(text) {
  const value = text === undefined || text === '' ? NaN : Number(text);
  return value >= 0 && value <= 1 ? value : null;
}

function numbers(text, count) {
  const list = (text ?? '').split(',').map(Number);
  return list.length === count && list.every(Number.isFinite) ? list : null;
}

function zoomOf(list) {
  return list && list[0] < list[1] && list[2] < list[3] ? { x: list.slice(0, 2), y: list.slice(2) } : null;
}

function cameraOf(list) {
  return list ? { x: list[0], y: list[1], z: list[2] } : null;
}

function short(value) {
  return String(Number(value.toPrecision(5)));
}
