import { menu } from '../components/menu.js';
import { element, uniqueId } from '../elements.js';
import { COLUMNS } from './columns.js';

/** The menu that chooses the columns of the list. */
export function columnMenu(choice) {
  const boxes = COLUMNS.map(({ key, title, hint }) => {
    const id = uniqueId('column');
    const box = element('input', { type: 'checkbox', id, onchange: () => {
      const others = choice.shown.filter((name) => name !== key);
      choice.choose(box.checked ? [...others, key] : others);
    } });
    return { key, box, node: element('div.option', {}, box, element('label', { for: id, title: hint }, title)) };
  });
  const reset = element('button', { type: 'button', onclick: () => choice.choose(null) }, 'Reset');
  const draw = () => {
    for (const { key, box } of boxes) box.checked = choice.shown.includes(key);
    // Not `disabled`, which would lose the focus of the click that reset the choice.
    reset.setAttribute('aria-disabled', String(choice.isDefault));
  };
  const content = element('fieldset.column-options', {}, element('legend', {}, 'Columns'), boxes.map(({ node }) => node), reset);
  draw();
  choice.addEventListener('change', draw);
  return menu('Columns', content);
}
