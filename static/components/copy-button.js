import { icon } from '../elements.js';

/** <copy-button> copies what its `text` property returns. */
class CopyButton extends HTMLElement {
  /** @type {() => string} */
  text = () => '';

  connectedCallback() {
    if (this.firstChild) return;
    const button = document.createElement('button');
    button.type = 'button';
    const words = document.createElement('span');
    words.textContent = 'Copy';
    button.append(icon('copy'), words);
    button.addEventListener('click', async () => {
      await copy(this.text());
      words.textContent = 'Copied';
      setTimeout(() => { words.textContent = 'Copy'; }, 1500);
    });
    this.append(button);
  }
}

/** Without https, only loopback pages have navigator.clipboard; others use the old way. */
async function copy(text) {
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
  const figure = document.createElement('div');
  figure.className = 'code';
  const pre = document.createElement('pre');
  pre.tabIndex = 0;
  pre.setAttribute('role', 'region');
  pre.setAttribute('aria-label', label);
  const button = document.createElement('copy-button');
  button.text = () => pre.textContent;
  figure.append(pre, button);
  return { node: figure, show: (text) => { pre.textContent = text; } };
}
