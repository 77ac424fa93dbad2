import { element, uniqueId } from '../elements.js';

/**
 * Tabs with arrow keys.
 * @param {{label: string, panels: {name: string, title: string, content: Node}[], chosen?: string,
 *          onchange?: (name: string) => void}} options
 * @returns {{node: HTMLElement, choose: (name: string) => void}}
 */
export function tabs({ label, panels, chosen = panels[0].name, onchange = () => {} }) {
  const id = uniqueId('tabs');
  const buttons = panels.map(({ name, title }) => element('button.tab', {
    type: 'button', role: 'tab', id: `${id}-${name}`, 'aria-controls': `${id}-${name}-panel`,
    onclick: () => { choose(name); onchange(name); },
  }, title));
  const bodies = panels.map(({ name, content }) => element('div', {
    role: 'tabpanel', id: `${id}-${name}-panel`, 'aria-labelledby': `${id}-${name}`,
  }, content));
  const list = element('div.tabs', { role: 'tablist', 'aria-label': label, onkeydown: move }, buttons);
  choose(chosen);
  return { node: element('div', {}, list, bodies), choose };

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
