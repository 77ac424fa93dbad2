import { element, icon, uniqueId } from '../elements.js';
import { confirmDialog } from '../components/confirm-dialog.js';
import { problem } from '../components/problem.js';
import { bytes } from '../format.js';

/**
 * Upload of checkpoints trained elsewhere, for use as minima.
 * @param {{api: object, currentModel: () => {model: object, dataset: string, loss: string}, onUse: (checkpoint: object) => void,
 *          onList: (checkpoints: object[]) => void, onRemove: () => void, active?: () => boolean}} options
 *   active: whether the section is on the page
 */
export function uploads({ api, currentModel, onUse, onList, onRemove, active = () => true }) {
  const id = uniqueId('upload');
  const status = element('div', { role: 'status' });
  const list = element('ul.checkpoints');
  const input = element('input.visually-hidden', { type: 'file', id, accept: '.safetensors', multiple: true, onchange: () => { upload(input.files); input.value = ''; } });
  const zone = element('div.drop', {}, input, icon('file'), element('span', {}, 'Drop a .safetensors file here, or ', element('label.link', { for: id }, 'choose one')));
  // On the whole page: the browser would open a file dropped outside the zone and leave the form.
  const listening = new AbortController();
  const listen = (kind, action) => addEventListener(kind, action, { signal: listening.signal });
  listen('dragover', (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    if (!active()) return;
    zone.classList.add('over');
  });
  listen('dragleave', (event) => { if (!event.relatedTarget) zone.classList.remove('over'); });
  listen('drop', (event) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    if (!active()) return;
    zone.classList.remove('over');
    zone.scrollIntoView({ block: 'nearest' });
    upload(event.dataTransfer.files);
  });
  refresh();
  const node = element('section.panel', {},
    element('h2', {}, 'Your own checkpoints'),
    element('p.hint', {}, 'Safetensors weights for the model and data set above. The server checks names, shapes and values.'),
    zone, status, list);
  return { node, close: () => listening.abort() };

  async function refresh() {
    const { items } = await api.get('/api/checkpoints');
    onList(items);
    list.replaceChildren(...items.map((item) => element('li.row', {},
      element('span.name', {}, item.name),
      element('span.soft', {}, `${item.model.name} · ${item.dataset} · ${bytes(item.size)}`),
      element('button', { type: 'button', 'aria-label': `Use ${item.name} as a minimum`, onclick: () => onUse(item) }, 'Use'),
      element('button.plain', { type: 'button', 'aria-label': `Delete ${item.name}`, title: 'Delete', onclick: () => remove(item) }, icon('bin')))));
  }

  async function upload(files) {
    for (const file of files) {
      const { model, dataset, loss } = currentModel();
      const name = file.name.replace(/\.safetensors$/, '').slice(0, 120) || 'checkpoint';
      const query = new URLSearchParams({ model: JSON.stringify(model), dataset, loss, name });
      status.replaceChildren(element('p.soft', {}, `Uploading ${file.name} (${bytes(file.size)}) …`));
      try {
        const kept = await api.upload(`/api/checkpoints?${query}`, file);
        status.replaceChildren();
        await refresh();
        onUse(kept);
      } catch (error) {
        status.replaceChildren(problem(new Error(`${file.name}: ${error.message}`)));
      }
    }
  }

  async function remove(item) {
    const text = `“${item.name}” will be deleted from the server. Finished experiments keep their results.`;
    if (!(await confirmDialog({ title: 'Delete this checkpoint?', text, action: 'Delete' }))) return;
    try {
      await api.del(`/api/checkpoints/${item.id}`);
      status.replaceChildren();
    } catch (error) {
      status.replaceChildren(problem(error));
    }
    await refresh();
    onRemove();
  }
}
