import { element, uniqueId } from '../elements.js';

/**
 * Asks you to confirm an action that cannot be undone, or takes long.
 * @param {{title: string, text: string, action: string, keep?: string, danger?: boolean}} question
 * @returns {Promise<boolean>}
 */
export async function confirmDialog({ title, text, action, keep = 'Keep it', danger = true }) {
  const id = uniqueId('confirm');
  const dialog = element('dialog', { 'aria-labelledby': id, 'aria-describedby': `${id}-text` },
    element('form', { method: 'dialog' },
      element('h2', { id }, title),
      element('p', { id: `${id}-text` }, text),
      element('div.actions', {},
        element('button', { value: 'no', autofocus: true }, keep),
        element(danger ? 'button.danger' : 'button.primary', { value: 'yes' }, action))));
  await closed(dialog);
  return dialog.returnValue === 'yes';
}

/** Shows a dialog until it is closed. */
export async function closed(dialog) {
  document.body.append(dialog);
  dialog.showModal();
  await new Promise((resolve) => { dialog.addEventListener('close', resolve); });
  dialog.remove();
}
