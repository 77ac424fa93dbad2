import { element, icon } from '../elements.js';

/** <copy-button> copies what its `text` property returns. */
class CopyButton extends HTMLElement {
  /** @type {() => string} */
  text = () => '';

  connectedCallback() {
    if (this.firstChild) return;
    const words = element('span', {}, 'Copy');
    this.append(element('button', { type: 'button', onclick: async () => {
      await copy(this.text());
      words.textContent = 'Copied';
      setTimeout(() => { words.textContent = 'Copy'; }, 1500);
    } }, icon('copy'), words));
  }
}

/** Without https, only loopback pages have navigator.clipboard; others use the old way. */
export async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

customElements.define('copy-button', CopyButton);

/** A block of code with a button that copies it. */
export function codeBlock(label) {
  const pre = element('pre', { tabIndex: 0, role: 'region', 'aria-label': label });
  const button = element('copy-button', { text: () => pre.textContent });
  return { node: element('div.code', {}, pre, button), show: (text) => { pre.textContent = text; } };
}
