/** Opens finished landscapes, ours and those of other tools: they are sent to the server and appear in the list. */

import { element } from '../elements.js';
import { bytes, counted } from '../format.js';
import { fileDrop } from './file-drop.js';
import { problem } from './problem.js';

export const LANDSCAPE_FILES = 'landscape.h5 of Valleyscope, plane.npz and curve.npz of dnn-mode-connectivity, surfaces (.h5) of loss-landscape';

/**
 * A place to drop files. Several of one run become one landscape.
 * @param {{api: object, words: string, onOpened: (experiments: object[]) => void}} options
 */
export function landscapeDrop({ api, words, onOpened }) {
  const status = element('div.drop-status', { role: 'status' });
  let sending = null; // one after the other, in the order in which they were dropped
  const drop = fileDrop({ accept: '.h5,.hdf5,.npz', words, onFiles: (files) => { sending = Promise.resolve(sending).then(() => open(files)); } });
  return { node: element('div.landscape-drop', {}, drop.node, status), close: drop.close };

  async function open(files) {
    const size = bytes(files.reduce((sum, file) => sum + file.size, 0));
    const what = files.length === 1 ? files[0].name : counted(files.length, 'file');
    status.replaceChildren(element('p.soft', {}, `Uploading and checking ${what} (${size}) …`));
    const form = new FormData();
    for (const file of files) form.append('file', file, file.name);
    try {
      const { items } = await api.form('/api/landscapes', form);
      status.replaceChildren();
      onOpened(items);
    } catch (error) {
      status.replaceChildren(problem(error));
    }
  }
}
