/** Compare my checkpoints: drop two or three files, name them, run. */

import { fileDrop } from '../components/file-drop.js';
import { problem } from '../components/problem.js';
import { element, icon } from '../elements.js';
import { formField } from '../form/field.js';
import { guessNetwork, readHeader } from '../form/network-guess.js';
import { freeName, renameKey } from '../form/spec-values.js';
import { bytes } from '../format.js';
import { RunBar } from './run-bar.js';

const MOST = 3;
const EMPTY = { minima: {} };

export default async function mount(body, { api, urlState, navigate, announce }) {
  const [models, datasets] = await Promise.all(['/api/models', '/api/datasets'].map((path) => api.get(path)));
  /** The files of this visit by checkpoint id: another network or data set needs them again. */
  const files = new Map();
  let values = EMPTY;
  const status = element('div', { role: 'status' });
  const list = element('div.map');
  const source = element('div.fields');
  const drop = fileDrop({ accept: '.safetensors', words: 'Drop two or three .safetensors files here, or ', onFiles: add });
  const bar = new RunBar({ api, navigate, onEstimate: () => showErrors({}), onErrors: (error) => showErrors(error.fields ?? {}) ?? error.message, onInvalid: () => {} });
  let fields = {};
  body.append(element('form.new.one-column', { novalidate: true, onsubmit: (event) => { event.preventDefault(); bar.submit(); } },
    element('div.left', {},
      element('section.panel', {}, element('h2', {}, 'Your checkpoints'),
        element('p.hint', {}, 'Weights of one network, trained in different ways. The first two are judged; a third is the control. The server checks names, shapes and values.'),
        drop.node, status, list),
      element('section.panel', {}, element('h2', {}, 'What they are'), source)),
    bar.node));
  show();
  return { update: (query) => { if (query.spec !== address()) show(); }, unmount: () => { drop.close(); bar.close(); } };

  function address() {
    return Object.keys(values.minima).length || values.model || values.dataset ? JSON.stringify(values) : undefined;
  }

  function show() {
    try {
      const given = JSON.parse(urlState.get().spec ?? 'null');
      values = given?.minima ? given : structuredClone(EMPTY);
    } catch {
      values = structuredClone(EMPTY);
    }
    render();
  }

  function render() {
    const names = Object.keys(values.minima);
    list.replaceChildren(...names.map((name, index) => entry(name, index)));
    const model = formField({ description: describe(values.model) }, {
      path: ['model', 'name'], label: 'Network', value: values.model?.name, none: 'choose',
      choices: () => models.items.map((item) => [item.name, `${item.name}: ${item.description}`]),
      onchange: (name) => change({ model: name === undefined ? undefined : { name } }),
    });
    const dataset = formField({ description: 'on which they are evaluated' }, {
      path: ['dataset'], label: 'Data', value: values.dataset, none: 'choose',
      choices: () => datasets.items.map((item) => [item.name, item.name]), onchange: (name) => change({ dataset: name }),
    });
    fields = { model, dataset };
    source.replaceChildren(model.node, dataset.node);
    if (names.length < 2) bar.block(names.length ? 'Add one more checkpoint.' : 'Drop two or three checkpoints to begin.');
    else bar.estimate({ name: names.join(' and ').slice(0, 120), ...values });
    urlState.set({ spec: address() });
  }

  function entry(name, index) {
    const role = index < 2 ? 'judged' : 'control';
    const made = formField({ kind: 'text', description: '' }, { path: ['minima', name], label: `name (${role})`, value: name, onchange: () => {} });
    const input = made.node.querySelector('input');
    input.addEventListener('change', () => {
      const others = Object.keys(values.minima).filter((other) => other !== name);
      const after = freeName(others, input.value.trim() || name);
      renameKey(values.minima, name, after);
      render();
    });
    const file = files.get(values.minima[name].checkpoint);
    return element('div.entry', {}, element('div.fields', {}, made.node,
      element('p.soft.file-facts', {}, file ? `${file.name}, ${bytes(file.size)}` : `checkpoint ${values.minima[name].checkpoint}`)),
    element('button.plain.remove', { type: 'button', 'aria-label': `Remove ${name}`, title: 'Remove', onclick: () => { delete values.minima[name]; render(); input.blur(); drop.focus(); } }, icon('bin')));
  }

  async function add(dropped) {
    status.replaceChildren();
    for (const file of dropped) {
      if (Object.keys(values.minima).length >= MOST) {
        complain(`${file.name}: three checkpoints are the most here. Remove one, or use all settings.`);
        return;
      }
      const header = await readHeader(file);
      const guess = header ? guessNetwork(header, datasets.items) : {};
      values.model ??= guess.model ?? undefined;
      values.dataset ??= guess.dataset ?? undefined;
      const name = freeName(Object.keys(values.minima), file.name.replace(/\.safetensors$/, ''));
      const id = await upload(file, name);
      if (!id) { render(); return; }
      values.minima[name] = { checkpoint: id };
      announce(`${name} added`);
      render();
    }
  }

  /** @returns {Promise<string | null>} the id of the checkpoint on the server */
  async function upload(file, name) {
    const query = new URLSearchParams({ model: JSON.stringify(values.model ?? { name: 'cnn' }), dataset: values.dataset ?? 'digits', name });
    status.replaceChildren(element('p.soft', {}, `Uploading ${file.name} (${bytes(file.size)}) …`));
    try {
      const { id } = await api.upload(`/api/checkpoints?${query}`, file);
      files.set(id, file);
      status.replaceChildren();
      return id;
    } catch (error) {
      complain(`${file.name}: ${error.message}`);
      return null;
    }
  }

  /** Another network or data set: the files are checked against it again. */
  async function change(patch) {
    values = Object.fromEntries(Object.entries({ ...values, ...patch }).filter(([, value]) => value !== undefined));
    bar.invalidate();
    for (const [name, minimum] of Object.entries(values.minima)) {
      const file = files.get(minimum.checkpoint);
      const id = file && (await upload(file, name));
      if (!id && file) break;
      if (id) {
        api.del(`/api/checkpoints/${minimum.checkpoint}`).catch(() => {}); // in use by an experiment: it stays
        values.minima[name] = { checkpoint: id };
      }
    }
    render();
  }

  function complain(message) {
    status.replaceChildren(problem(new Error(message)));
  }

  /** @returns {string | null} messages without a field here */
  function showErrors(errors) {
    const rest = [];
    const found = {};
    for (const [path, message] of Object.entries(errors)) {
      const place = path.split('.')[0];
      if (place in fields) found[place] = message;
      else rest.push(message);
    }
    for (const [name, { showError }] of Object.entries(fields)) showError(found[name] ?? null);
    return rest.length ? rest.join('\n') : Object.keys(found).length ? 'See the message beside the field.' : null;
  }
}

/** The options of a guessed network: "channels 4, 8; hidden 16" */
function describe(model) {
  const { name, ...options } = model ?? {};
  const shown = Object.entries(options).map(([option, value]) => `${option} ${[value].flat().join(', ')}`);
  return shown.length ? shown.join('; ') : 'guessed from the files where they tell';
}
