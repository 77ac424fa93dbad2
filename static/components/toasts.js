import { element, icon } from '../elements.js';

const SHOWN = 8000;

/**
 * Says something at the corner of the page; it goes by itself unless it is bad.
 * @param {string} text
 * @param {{bad?: boolean}} [options]
 */
export function notify(text, { bad = false } = {}) {
  const close = () => toast.remove();
  const toast = element('div.toast', { class: bad ? 'bad' : null },
    element('p', {}, text),
    element('button.plain', { type: 'button', 'aria-label': 'Close notice', onclick: close }, icon('cross')));
  document.getElementById('toasts').append(toast);
  if (!bad) setTimeout(close, SHOWN);
}
