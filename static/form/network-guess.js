/** Which network and data a safetensors file is for, from its header: our own metadata, else names and shapes of its tensors. */

const LARGEST_HEADER = 4 * 2 ** 20;

/**
 * Reads the header of a file, not its weights.
 * @param {File} file
 * @returns {Promise<{metadata: Record<string, string>, shapes: Record<string, number[]>} | null>} null: not a safetensors file
 */
export async function readHeader(file) {
  const start = await file.slice(0, 8).arrayBuffer();
  if (start.byteLength < 8) return null;
  const length = Number(new DataView(start).getBigUint64(0, true));
  if (length < 2 || length > LARGEST_HEADER) return null;
  try {
    const { __metadata__: metadata = {}, ...tensors } = JSON.parse(await file.slice(8, 8 + length).text());
    return { metadata, shapes: Object.fromEntries(Object.entries(tensors).map(([name, { shape }]) => [name, shape])) };
  } catch {
    return null;
  }
}

/**
 * @param {{name: string, classes: number | null, shape: number[] | null}[]} datasets that the server offers
 * @returns {{model: object | null, dataset: string | null}}
 */
export function guessNetwork({ metadata, shapes }, datasets) {
  try {
    const { model, dataset } = JSON.parse(metadata.spec ?? '{}');
    if (model?.name && dataset) return { model, dataset };
  } catch { /* the metadata of another program */ }
  const model = networkOf(shapes);
  const linear = Object.keys(shapes).filter((name) => /^linear\d*\.weight$/.test(name)).sort();
  const classes = shapes[linear.at(-1)]?.[0];
  const fits = ({ shape, classes: known }) => shape && known === classes && fitsInput(model, shapes, shape);
  return { model, dataset: (model && datasets.find(fits)?.name) ?? null };
}

function networkOf(shapes) {
  const weight = (name) => shapes[`${name}.weight`];
  if (weight('conv1_1')) return { name: 'norm1_1.weight' in shapes ? 'vgg16_bn' : 'vgg16', ...unless('width', weight('conv1_1')[0], 64) };
  if (weight('block1_1.norm1') && 'conv.bias' in shapes) return { name: 'wrn28x10' };
  if (weight('conv') && weight('norm')) return { name: 'resnet56' };
  if (weight('conv2') && weight('linear1')) {
    const channels = [weight('conv1')[0], weight('conv2')[0]];
    const [hidden, kernel] = [weight('linear1')[0], weight('conv1')[2]];
    return channels.join() === '20,50' && hidden === 500 && kernel === 5 ? { name: 'lenet' } : { name: 'cnn', channels, hidden, ...unless('kernel', kernel, 3) };
  }
  if (!weight('linear1')) return null;
  const hidden = [];
  for (let layer = 1; weight(`linear${layer + 1}`); layer += 1) hidden.push(weight(`linear${layer}`)[0]);
  return { name: 'mlp', hidden };
}

const unless = (name, value, usual) => (value === usual ? {} : { [name]: value });

/** Whether samples of a shape fit the first layers. */
function fitsInput(model, shapes, sample) {
  const input = shapes['linear1.weight']?.[1];
  if (model.name === 'mlp') return sample.reduce((a, b) => a * b, 1) === input;
  const first = shapes['conv1.weight'] ?? shapes['conv1_1.weight'] ?? shapes['conv.weight'];
  if (first[1] !== sample[0]) return false;
  if (model.name === 'cnn') return model.channels[1] * Math.floor(sample[1] / 4) * Math.floor(sample[2] / 4) === input;
  if (model.name === 'lenet') return 50 * Math.floor((Math.floor((sample[1] - 4) / 2) - 4) / 2) ** 2 === input;
  return sample[1] === 32;
}
