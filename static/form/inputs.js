/** Inputs for single values. Each reads and writes JSON values; an empty one means the default. */

import { element } from '../elements.js';

/**
 * @typedef {{node: HTMLElement, inputs: HTMLElement[], read: () => unknown, write: (value: unknown) => void,
 *            showDefault: (value: unknown) => void}} Control
 */

/**
 * @param {import('./schema.js').Field} field
 * @param {{id: string, choices?: () => [string, string][], onchange: () => void}} options
 * @returns {Control}
 */
export function control(field, options) {
  if (options.choices) return field.kind === 'tuple' ? tuple(field.length, options) : namePicker(options);
  switch (field.kind) {
    case 'choice': return choice(field.choices, options);
    case 'boolean': return choice(['yes', 'no'], options, { read: (text) => text === 'yes', write: (value) => (value ? 'yes' : 'no') });
    case 'integer':
    case 'number': return textInput(options, { read: numberOf, write: String, mode: field.kind === 'integer' ? 'numeric' : 'decimal' });
    case 'list': return field.items.enum ? checkboxes(field.items.enum, options) : textInput(options, listText(field.items.type));
    case 'tuple': return textInput(options, listText('string'));
    default: return textInput(options, { read: (text) => text, write: String });
  }
}

/** The typed text as a number if it is one; other text goes to the server, which rejects it. */
function numberOf(text) {
  const number = Number(text);
  return Number.isFinite(number) && /\d/.test(text) ? number : text;
}

function listText(type) {
  const one = type === 'integer' || type === 'number' ? numberOf : (text) => text;
  return {
    read: (text) => text.split(',').map((part) => part.trim()).filter(Boolean).map(one),
    write: (value) => [value].flat().join(', '),
  };
}

function textInput({ id, onchange }, { read, write, mode }) {
  const input = element('input', { id, type: 'text', inputmode: mode, spellcheck: false, autocomplete: 'off', oninput: onchange });
  return {
    node: input,
    inputs: [input],
    read: () => (input.value.trim() === '' ? undefined : read(input.value.trim())),
    write: (value) => { input.value = value === undefined || value === null ? '' : write(value); },
    showDefault: (value) => { input.placeholder = value === undefined || value === null ? '' : write(value); },
  };
}

function choice(choices, { id, onchange }, { read = (text) => text, write = (value) => value } = {}) {
  const defaultValue = element('option', { value: '' }, 'default');
  const input = element('select', { id, onchange }, defaultValue, choices.map((name) => element('option', { value: name }, name)));
  return {
    node: input,
    inputs: [input],
    read: () => (input.value === '' ? undefined : read(input.value)),
    write: (value) => { input.value = value === undefined || value === null ? '' : write(value); },
    showDefault: (value) => { defaultValue.textContent = value === undefined || value === null ? 'none' : `${write(value)} (default)`; },
  };
}

/** A choice of known names. An unknown name stays; the server rejects it. */
function namePicker({ id, choices, onchange }) {
  const defaultValue = element('option', { value: '' });
  const input = element('select', { id, onchange });
  const fill = (kept) => {
    const known = choices();
    const extra = kept && !known.some(([name]) => name === kept) ? [[kept, kept]] : [];
    input.replaceChildren(defaultValue, ...[...known, ...extra].map(([value, words]) => element('option', { value }, words)));
    input.value = kept ?? '';
  };
  fill();
  return {
    node: input,
    inputs: [input],
    read: () => (input.value === '' ? undefined : input.value),
    write: fill,
    showDefault: (value) => { defaultValue.textContent = value === undefined || value === null ? 'none' : `${value} (default)`; },
  };
}

/** Several names in a row. */
function tuple(length, { id, label, choices, onchange }) {
  const parts = Array.from({ length }, (_, index) => namePicker({ id: index ? `${id}-${index}` : id, choices, onchange }));
  parts.forEach(({ node }, index) => { node.setAttribute('aria-label', `${label} ${index + 1}`); });
  return {
    node: element('div.row.tuple', {}, parts.map(({ node }) => node)),
    inputs: parts.map(({ node }) => node),
    read: () => {
      const names = parts.map((part) => part.read() ?? '');
      return names.every((name) => name === '') ? undefined : names;
    },
    write: (value) => parts.forEach((part, index) => part.write(value?.[index])),
    showDefault: () => parts.forEach((part) => part.showDefault(undefined)),
  };
}

function checkboxes(choices, { id, onchange }) {
  let defaultValue = [];
  const boxes = choices.map((name, index) => element('input', { type: 'checkbox', id: index ? `${id}-${name}` : id, value: name, onchange }));
  const read = () => boxes.filter((box) => box.checked).map((box) => box.value);
  const tick = (names) => boxes.forEach((box) => { box.checked = names.includes(box.value); });
  return {
    node: element('div.row.ticks', {}, boxes.map((box) => element('label', {}, box, box.value))),
    inputs: boxes,
    read: () => (read().join() === defaultValue.join() ? undefined : read()),
    write: (value) => tick(value ?? defaultValue),
    showDefault: (value) => { defaultValue = value ?? []; },
  };
}
