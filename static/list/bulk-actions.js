/** What can be done to several experiments at once: each asks once, says what became of it, and can be undone. */

import { confirmDialog, closed } from '../components/confirm-dialog.js';
import { readTags } from '../components/description-editor.js';
import { showToast, toastErrors } from '../components/toasts.js';
import { element, uniqueId } from '../elements.js';
import { counted } from '../format.js';

const MOST = 200; // ids that the server takes at once
const ACTIVE = ['queued', 'running'];

/**
 * @param {object} api
 * @param {(ids: string[]) => Promise<void>} changed reloads the list and puts the focus near these experiments
 */
export function bulkActions(api, changed) {
  /** Returns the ids for which it worked; says why it did not for the others. */
  async function send(action, ids, more = {}) {
    const outcomes = [];
    for (let start = 0; start < ids.length; start += MOST) {
      const { items } = await api.post('/api/experiments/bulk', { action, ids: ids.slice(start, start + MOST), ...more });
      outcomes.push(...items);
    }
    const refused = outcomes.filter(({ ok }) => !ok);
    if (refused.length) showToast(`${counted(refused.length, 'experiment')} refused it: ${refused[0].detail}`, { bad: true });
    return outcomes.filter(({ ok }) => ok).map(({ id }) => id);
  }

  const undoable = (words, ids, undo) => {
    if (ids.length) showToast(words, { action: ['Undo', () => toastErrors(async () => { await undo(); await changed(ids); })] });
  };
  const named = (experiments) => (experiments.length === 1 ? `“${experiments[0].name}”` : counted(experiments.length, 'experiment'));
  const idsOf = (experiments) => experiments.map(({ id }) => id);

  return {
    cancel: (experiments) => attempt(async () => {
      const running = experiments.filter(({ state }) => ACTIVE.includes(state));
      if (!running.length) return void showToast('None of them is queued or running.');
      const sure = await confirmDialog({ title: `Cancel ${named(running)}?`, text: 'Results so far are kept. You can retry from there.', action: 'Cancel', keep: 'Let it run' });
      if (!sure) return undefined;
      const ids = await send('cancel', idsOf(running));
      undoable(`${named(running)} cancelled.`, ids, () => retryAll(ids));
      return changed(ids);
    }),

    delete: (experiments) => attempt(async () => {
      const ended = experiments.filter(({ state }) => !ACTIVE.includes(state));
      if (!ended.length) return void showToast('Cancel them first: they are queued or running.');
      const rest = experiments.length - ended.length;
      const text = `${ended.length === 1 ? `${named(ended)} moves` : 'They move'} to the trash. After a day they are deleted with their files; until then you can undo this.`
        + (rest ? ` ${counted(rest, 'experiment')} still queued or running ${rest === 1 ? 'stays' : 'stay'}.` : '');
      const title = ended.length === 1 ? 'Delete this experiment?' : `Delete ${named(ended)}?`;
      if (!(await confirmDialog({ title, text, action: 'Delete' }))) return undefined;
      const ids = await send('delete', idsOf(ended));
      undoable(`${named(ended)} ${ids.length === 1 ? 'is' : 'are'} in the trash.`, ids, () => send('restore', ids));
      return changed(ids);
    }),

    restore: (experiments) => attempt(async () => {
      const ids = await send('restore', idsOf(experiments));
      undoable(`${named(experiments)} restored.`, ids, () => send('delete', ids));
      return changed(ids);
    }),

    purge: (experiments) => attempt(async () => {
      const text = 'They are deleted with their files at once. This cannot be undone.';
      if (!(await confirmDialog({ title: `Delete ${named(experiments)} for good?`, text, action: 'Delete for good' }))) return undefined;
      const ids = await send('delete', idsOf(experiments), { permanent: true });
      if (ids.length) showToast(`${named(experiments)} deleted.`);
      return changed(ids);
    }),

    tag: (experiments) => attempt(async () => {
      const tags = readTags((await askTags(named(experiments))) ?? '');
      if (!tags.length) return undefined;
      const ids = await send('tag', idsOf(experiments), { tags });
      const added = (tag) => ids.filter((id) => !experiments.find((one) => one.id === id).tags.some((known) => known.toLowerCase() === tag.toLowerCase()));
      undoable(`${named(experiments)} tagged.`, ids, async () => {
        for (const tag of tags) if (added(tag).length) await send('untag', added(tag), { tags: [tag] });
      });
      return changed(ids);
    }),

    retry: (experiments) => attempt(async () => {
      await retryAll(idsOf(experiments));
      return changed(idsOf(experiments));
    }),
  };

  /** An experiment that still stops refuses a retry for a moment. */
  async function retryAll(ids) {
    for (const id of ids) await api.post(`/api/experiments/${id}/retry`);
  }
}

const attempt = (action) => toastErrors(action);

async function askTags(what) {
  const id = uniqueId('tags');
  const input = element('input', { id, type: 'text', required: true, autofocus: true, placeholder: 'paper, wide' });
  const dialog = element('dialog', { 'aria-labelledby': `${id}-title` },
    element('form', { method: 'dialog' },
      element('h2', { id: `${id}-title` }, `Tag ${what}`),
      element('label', { for: id }, 'tags, with commas between'),
      input,
      element('div.actions', {},
        element('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'),
        element('button.primary', { value: 'yes' }, 'Tag'))));
  await closed(dialog);
  return dialog.returnValue === 'yes' ? input.value : null;
}
