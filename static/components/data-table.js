import { element } from '../elements.js';

/**
 * A table, scrolling sideways in a narrow page.
 * @param {{caption?: string, text: string[], numbers?: string[], rows: (Node | string | number)[][], stacked?: boolean}} content
 *   titles of the text columns, then of the number columns; stacked: on a phone each row is a card with all its numbers
 */
export function dataTable({ caption, text, numbers = [], rows, stacked = false }) {
  const titles = [...text, ...numbers];
  const align = (index) => (index < text.length ? null : 'number');
  return element('div.scroll', { tabIndex: 0, role: 'region', 'aria-label': caption ?? 'table' },
    element('table', { class: stacked ? 'stacked' : null },
      caption ? element('caption.visually-hidden', {}, caption) : null,
      element('thead', {}, element('tr', {}, titles.map((title, index) => element('th', { scope: 'col', class: align(index) }, title)))),
      element('tbody', {}, rows.map((row) => element('tr', {}, row.map((cell, index) => element('td', { class: align(index), 'data-title': stacked ? titles[index] : null }, cell)))))));
}

/** A number with a smaller one after it: its spread, or its range. */
export const noted = (value, note) => element('span', {}, value, ' ', element('small.soft', {}, note));
