import { element, icon } from '../elements.js';

const SHOWN = 8000;

/**
 * Shows a message in the corner of the page. An error stays until you close it.
 * @param {string} text
 * @param {{bad?: boolean, action?: [string, () => void]}} [options] action: the words of a button, and what it does
 */
export function showToast(text, { bad = false, action = null } = {}) {
  const close = () => toast.remove();
  const toast = element('div.toast', { class: bad ? 'bad' : null },
    element('p', {}, text),
    action && element('button', { type: 'button', onclick: () => { close(); action[1](); } }, action[0]),
    element('button.plain', { type: 'button', 'aria-label': 'Close notice', onclick: close }, icon('cross')));
  document.getElementById('toasts').append(toast);
  if (!bad) setTimeout(close, SHOWN);
}

/** Runs an action and shows its error, if any. */
export async function toastErrors(action, prefix = '') {
  try {
    await action();
  } catch (error) {
    showToast(prefix + error.message, { bad: true });
  }
}
