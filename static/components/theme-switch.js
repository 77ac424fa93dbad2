import { element, icon } from '../elements.js';

const CHOICES = [['system', 'System'], ['light', 'Light'], ['dark', 'Dark']];
const ICONS = { system: 'system', light: 'sun', dark: 'moon' };

/** A button that cycles through system, light and dark. */
export function themeSwitch(theme) {
  const button = element('button.plain', { type: 'button', onclick: next });
  show();
  return button;

  function next() {
    const position = CHOICES.findIndex(([choice]) => choice === theme.choice);
    theme.choice = CHOICES[(position + 1) % CHOICES.length][0];
    show();
  }

  function show() {
    const [choice, words] = CHOICES.find(([name]) => name === theme.choice);
    button.replaceChildren(icon(ICONS[choice]));
    button.setAttribute('aria-label', `Theme: ${words.toLowerCase()}. Change`);
    button.title = `Theme: ${words.toLowerCase()}`;
    button.dataset.choice = choice;
  }
}
