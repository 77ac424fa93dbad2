import { element } from '../elements.js';

/**
 * A table, scrolling sideways in a narrow page.
 * @param {{caption?: string, text: string[], numbers?: string[], rows: (Node | string | number)[][]}} content
 *   titles of the text columns, then of the number columns
 */
export function dataTable({ caption, text, numbers = [], rows }) {
  const align = (index) => (index < text.length ? null : 'number');
  return element('div.scroll', { tabIndex: 0, role: 'region', 'aria-label': caption ?? 'table' },
    element('table', {},
      caption ? element('caption.visually-hidden', {}, caption) : null,
      element('thead', {}, element('tr', {}, [...text, ...numbers].map((title, index) => element('th', { scope: 'col', class: align(index) }, title)))),
      element('tbody', {}, rows.map((row) => element('tr', {}, row.map((cell, index) => element('td', { class: align(index) }, cell)))))));
}

/** A number with a smaller one after it: its spread, or its range. */
export const noted = (value, note) => element('span', {}, value, ' ', element('small.soft', {}, note));
