import { element, icon, uniqueId } from '../elements.js';
import { confirm } from '../components/confirm-dialog.js';
import { problem } from '../components/problem.js';
import { bytes } from '../format.js';

/**
 * Networks that people trained elsewhere: dropped here, checked by the server, used as minima.
 * @param {{api: object, described: () => {model: object, dataset: string}, use: (checkpoint: object) => void,
 *          listed: (checkpoints: object[]) => void, removed: () => void}} options
 */
export function uploads({ api, described, use, listed, removed }) {
  const id = uniqueId('upload');
  const said = element('div', { role: 'status' });
  const list = element('ul.checkpoints');
  const input = element('input.unseen', { type: 'file', id, accept: '.safetensors', multiple: true, onchange: () => { take(input.files); input.value = ''; } });
  const zone = element('div.drop', {}, input, icon('file'), element('span', {}, 'Drop a .safetensors file here, or ', element('label.link', { for: id }, 'choose one')));
  // On the whole page: a browser opens a file that misses the zone, and leaves the form.
  const listening = new AbortController();
  const listen = (kind, action) => addEventListener(kind, action, { signal: listening.signal });
  listen('dragover', (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    zone.classList.add('over');
  });
  listen('dragleave', (event) => { if (!event.relatedTarget) zone.classList.remove('over'); });
  listen('drop', (event) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    zone.classList.remove('over');
    zone.scrollIntoView({ block: 'nearest' });
    take(event.dataTransfer.files);
  });
  refresh();
  const node = element('section.panel', {},
    element('h2', {}, 'Your own checkpoints'),
    element('p.hint', {}, 'Weights of the model and data set above, as safetensors. Names, shapes and values are checked.'),
    zone, said, list);
  return { node, close: () => listening.abort() };

  async function refresh() {
    const { items } = await api.get('/api/checkpoints');
    listed(items);
    list.replaceChildren(...items.map((item) => element('li.row', {},
      element('span.name', {}, item.name),
      element('span.soft', {}, `${item.model.name} · ${item.dataset} · ${bytes(item.size)}`),
      element('button', { type: 'button', 'aria-label': `Use ${item.name} as a minimum`, onclick: () => use(item) }, 'Use'),
      element('button.plain', { type: 'button', 'aria-label': `Delete ${item.name}`, title: 'Delete', onclick: () => remove(item) }, icon('bin')))));
  }

  async function take(files) {
    for (const file of files) {
      const { model, dataset } = described();
      const name = file.name.replace(/\.safetensors$/, '').slice(0, 120) || 'checkpoint';
      const query = new URLSearchParams({ model: JSON.stringify(model), dataset, name });
      said.replaceChildren(element('p.soft', {}, `Sending ${file.name} (${bytes(file.size)}) …`));
      try {
        const kept = await api.upload(`/api/checkpoints?${query}`, file);
        said.replaceChildren();
        await refresh();
        use(kept);
      } catch (error) {
        said.replaceChildren(problem(new Error(`${file.name}: ${error.message}`)));
      }
    }
  }

  async function remove(item) {
    const text = `“${item.name}” will be gone from the server. Experiments that are done keep their results.`;
    if (!(await confirm({ title: 'Delete this checkpoint?', text, action: 'Delete' }))) return;
    try {
      await api.del(`/api/checkpoints/${item.id}`);
      said.replaceChildren();
    } catch (error) {
      said.replaceChildren(problem(error));
    }
    await refresh();
    removed();
  }
}
