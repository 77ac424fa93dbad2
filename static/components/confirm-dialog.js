import { element, uniqueId } from '../elements.js';

/**
 * Asks you to confirm an action that cannot be undone.
 * @param {{title: string, text: string, action: string}} question
 * @returns {Promise<boolean>}
 */
export function confirmDialog({ title, text, action }) {
  const id = uniqueId('confirm');
  const dialog = element('dialog', { 'aria-labelledby': id, 'aria-describedby': `${id}-text` },
    element('form', { method: 'dialog' },
      element('h2', { id }, title),
      element('p', { id: `${id}-text` }, text),
      element('div.actions', {},
        element('button', { value: 'no', autofocus: true }, 'Keep it'),
        element('button.danger', { value: 'yes' }, action))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
  });
}
