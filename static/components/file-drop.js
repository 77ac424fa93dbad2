import { element, icon, uniqueId } from '../elements.js';

/**
 * A place to drop files, or to choose them. It takes files dropped anywhere on the page: the browser would open them.
 * @param {{accept: string, words: string, onFiles: (files: File[]) => void}} options
 */
export function fileDrop({ accept, words, onFiles }) {
  const id = uniqueId('files');
  const input = element('input.visually-hidden', { type: 'file', id, accept, multiple: true, onchange: () => { const files = [...input.files]; input.value = ''; onFiles(files); } });
  const zone = element('div.drop', {}, input, icon('file'), element('span', {}, words, element('label.link', { for: id }, 'choose them')));
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
    onFiles([...event.dataTransfer.files]);
  });
  return { node: zone, focus: () => input.focus(), close: () => listening.abort() };
}
