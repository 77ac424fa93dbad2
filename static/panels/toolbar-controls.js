/** Toolbar controls: radio buttons, select, checkbox, slider. */

import { element, uniqueId } from '../elements.js';
import { withLossUnit } from '../plots/loss-unit.js';

/**
 * Radio buttons in a row.
 * @param {{label: string, options: [string, string][], onchange: (value: string) => void}} about options: value, words
 */
export function segmented({ label, options, onchange }) {
  const name = uniqueId('choice');
  const inputs = options.map(([value]) =>
    element('input', { type: 'radio', name, value, onchange: () => onchange(value) }),
  );
  const node = element('fieldset.segmented', {},
    element('legend', {}, label),
    options.map(([, words], index) => element('label', {}, inputs[index], element('span', {}, words))));
  return { node, show: (value) => inputs.forEach((input) => { input.checked = input.value === value; }) };
}

export function choice({ label, options, onchange }) {
  const id = uniqueId('choice');
  const select = element('select', { id, onchange: () => onchange(select.value) },
    options.map(([value, words]) => element('option', { value }, words)));
  const node = element('div.control', {}, element('label', { for: id }, label), select);
  return { node, show: (value) => { select.value = value; } };
}

export function toggle({ label, onchange }) {
  const input = element('input', { type: 'checkbox', onchange: () => onchange(input.checked) });
  return { node: element('label.toggle', {}, input, label), show: (on) => { input.checked = on; }, input };
}

/** Ends of the clip slider: from a little above the scale's lowest value to the highest value of the grids. */
function clipEnds({ low, high }, grids) {
  let top = high;
  for (const grid of grids) for (const value of grid) if (Number.isFinite(value) && value > top) top = value;
  const above = low > 0 ? Math.min(2 * low, low + 0.1 * (top - low)) : top / 100;
  const first = Math.max(Math.min(high, above), top / 1e5);
  return [first, Math.max(top, 1.01 * first)];
}

/**
 * A logarithmic slider for the end of a colour scale, with an "auto" button.
 * @param {(value: number | null) => void} onchange
 */
export function clipSlider(onchange) {
  const id = uniqueId('clip');
  let scale;
  let ends;
  const value = () => ends[0] * (ends[1] / ends[0]) ** (Number(input.value) / 100);
  const output = element('output', { for: id });
  const oninput = () => {
    showValue(value());
    onchange(Number(value().toPrecision(3)));
  };
  const input = element('input', { id, type: 'range', min: '0', max: '100', step: '1', oninput });
  const automatic = element('button.plain', { type: 'button', onclick: () => onchange(null) }, 'auto');
  const node = element('div.control.clip', {}, element('label', { for: id }, 'clip'), input, output, automatic);
  return { node, show };

  function showValue(shown) {
    output.textContent = scale.quantity === 'loss' ? withLossUnit(scale.label(shown)) : scale.label(shown);
    input.setAttribute('aria-valuetext', output.textContent);
  }

  /** Shows the end of a scale; `grids` are its surfaces, `chosen` is false for auto. */
  function show(used, grids, chosen) {
    scale = used;
    ends = clipEnds(scale, grids);
    input.value = String(Math.round((100 * Math.log(scale.high / ends[0])) / Math.log(ends[1] / ends[0])));
    showValue(scale.high);
    automatic.disabled = !chosen;
  }
}
