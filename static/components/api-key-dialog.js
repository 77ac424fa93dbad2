import { element, uniqueId } from '../elements.js';
import { closed } from './confirm-dialog.js';

/**
 * Asks for the API key.
 * @param {boolean} wrong whether the server rejected the last key
 * @returns {Promise<string>}
 */
export async function askForKey(wrong) {
  const field = uniqueId('key');
  const input = element('input', {
    id: field, type: 'password', required: true, autocomplete: 'current-password', spellcheck: false,
    'aria-describedby': `${field}-hint`, 'aria-invalid': wrong ? 'true' : null,
  });
  const dialog = element('dialog', { 'aria-labelledby': `${field}-title` },
    element('form', { method: 'dialog' },
      element('h2', { id: `${field}-title` }, 'API key required'),
      element('p.soft', { id: `${field}-hint` },
        wrong ? 'The server rejected that key. ' : '',
        'Ask the operator of this server (setting VALLEY_API_KEY). The key is kept until you close this tab.'),
      element('label', { for: field }, 'Key'),
      input,
      element('div.actions', {}, element('button.primary', { type: 'submit' }, 'Continue'))));
  dialog.addEventListener('cancel', (event) => event.preventDefault());
  await closed(dialog);
  return input.value.trim();
}
