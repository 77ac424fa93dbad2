import { element, uniqueId } from '../elements.js';

/**
 * Tabs with arrow keys.
 * @param {string} label
 * @param {{name: string, title: string, content: Node}[]} panels
 */
export function tabs(label, panels) {
  const id = uniqueId('tabs');
  const buttons = panels.map(({ name, title }) => element('button.tab', {
    type: 'button', role: 'tab', id: `${id}-${name}`, 'aria-controls': `${id}-${name}-panel`,
    onclick: () => choose(name),
  }, title));
  const bodies = panels.map(({ name, content }) => element('div', {
    role: 'tabpanel', id: `${id}-${name}-panel`, 'aria-labelledby': `${id}-${name}`,
  }, content));
  const list = element('div.tabs', { role: 'tablist', 'aria-label': label, onkeydown: move }, buttons);
  choose(panels[0].name);
  return element('div', {}, list, bodies);

  function choose(wanted) {
    panels.forEach(({ name }, index) => {
      const on = name === wanted;
      buttons[index].setAttribute('aria-selected', String(on));
      buttons[index].tabIndex = on ? 0 : -1;
      bodies[index].hidden = !on;
    });
  }

  function move(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length];
    next.focus();
    next.click();
  }
}
