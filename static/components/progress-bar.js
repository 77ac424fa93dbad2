/** <progress-bar value="0.42" label="digits">: how much is done. */
class ProgressBar extends HTMLElement {
  static observedAttributes = ['value', 'label'];

  attributeChangedCallback() {
    const share = Math.min(1, Math.max(0, Number(this.getAttribute('value')) || 0));
    this.setAttribute('role', 'progressbar');
    this.setAttribute('aria-valuemin', '0');
    this.setAttribute('aria-valuemax', '100');
    this.setAttribute('aria-valuenow', String(Math.round(100 * share)));
    this.setAttribute('aria-label', this.getAttribute('label') ?? 'progress');
    this.style.setProperty('--share', `${100 * share}%`);
  }
}

customElements.define('progress-bar', ProgressBar);
