import { element, uniqueId } from '../elements.js';

/**
 * Asks for the server's key.
 * @param {boolean} wrong whether one was sent that the server refused
 * @returns {Promise<string>}
 */
export function askForKey(wrong) {
  const field = uniqueId('key');
  const input = element('input', {
    id: field, type: 'password', required: true, autocomplete: 'current-password', spellcheck: false,
    'aria-describedby': `${field}-hint`, 'aria-invalid': wrong ? 'true' : null,
  });
  const dialog = element('dialog', { 'aria-labelledby': `${field}-title` },
    element('form', { method: 'dialog' },
      element('h2', { id: `${field}-title` }, 'This server wants a key'),
      element('p.soft', { id: `${field}-hint` },
        wrong ? 'The server does not know that key. ' : '',
        'Its operator set it as VALLEY_API_KEY. It is kept until this tab is closed.'),
      element('label', { for: field }, 'Key'),
      input,
      element('div.actions', {}, element('button.primary', { type: 'submit' }, 'Continue'))));
  dialog.addEventListener('cancel', (event) => event.preventDefault());
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(input.value.trim());
    });
  });
}
