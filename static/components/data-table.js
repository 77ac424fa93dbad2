import { element } from '../elements.js';

/**
 * A table, scrolling sideways in a narrow page.
 * @param {{caption?: string, columns: {title: string, number?: boolean}[], rows: (Node | string | number)[][]}} content
 */
export function dataTable({ caption, columns, rows }) {
  const align = (index) => (columns[index].number ? 'number' : null);
  return element('div.scroll', { tabIndex: 0, role: 'region', 'aria-label': caption ?? 'table' },
    element('table', {},
      caption ? element('caption.unseen', {}, caption) : null,
      element('thead', {}, element('tr', {}, columns.map(({ title }, index) => element('th', { scope: 'col', class: align(index) }, title)))),
      element('tbody', {}, rows.map((row) => element('tr', {}, row.map((cell, index) => element('td', { class: align(index) }, cell)))))));
}
