import { element, icon } from '../elements.js';

/**
 * What went wrong, and what to do, beside the thing it concerns.
 * @param {Error} error
 * @param {{again?: () => void}} [options] offers to try again
 */
export function problem(error, { again } = {}) {
  return element('div.problem', { role: 'alert' },
    icon('cross'),
    element('p', {}, error.message || String(error)),
    again ? element('button', { type: 'button', onclick: again }, 'Try again') : null);
}

/** The content of a view that could not be shown. */
export const errorPage = (title, error) => [
  element('h1', { tabIndex: -1 }, title),
  problem(error),
  element('p', {}, element('a', { href: '/' }, 'All experiments')),
];
