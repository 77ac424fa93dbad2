import { element } from '../elements.js';

/**
 * A button that opens a small panel below it; Escape or a click elsewhere closes it.
 * @param {string} words
 * @param {HTMLElement} content
 */
export function menu(words, content) {
  const summary = element('summary.button', {}, words);
  const node = element('details.menu', {}, summary, element('div.menu-list', {}, content));
  node.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !node.open) return;
    node.open = false;
    summary.focus();
  });
  const outside = (event) => { if (!node.contains(event.target)) node.open = false; };
  document.addEventListener('pointerdown', outside);
  return { node, close: () => document.removeEventListener('pointerdown', outside) };
}
