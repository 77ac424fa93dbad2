/** Inputs for single values. Each reads and writes JSON values; an empty one means the default. */

import { element } from '../elements.js';

const YES_NO = { read: (text) => text === 'yes', write: (value) => (value ? 'yes' : 'no') };
const missing = (value) => value === undefined || value === null;

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
  if (options.choices) return field.kind === 'tuple' ? tuple(field.length, options) : picker(options);
  switch (field.kind) {
    case 'choice': return picker({ ...options, choices: () => field.choices.map((name) => [name, name]) });
    case 'boolean': return picker({ ...options, choices: () => [['yes', 'yes'], ['no', 'no']] }, YES_NO);
    case 'integer':
    case 'number': return textInput(options, { read: numberOf, write: String, mode: field.kind === 'integer' ? 'numeric' : 'decimal' });
    case 'list': return field.items.enum ? checkboxes(field.items.enum, options) : textInput(options, listText(field.items.type));
    case 'json': return textInput(options, { read: parsed, write: JSON.stringify });
    case 'tuple': return textInput(options, listText('string'));
    default: return textInput(options, { read: (text) => text, write: String });
  }
}

/** The typed text as a JSON value if it is one; other text goes to the server, which rejects it. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
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
    write: (value) => { input.value = missing(value) ? '' : write(value); },
    showDefault: (value) => { input.placeholder = missing(value) ? '' : write(value); },
  };
}

/** A choice of known values. An unknown one stays; the server rejects it. */
function picker({ id, choices, none = 'none', onchange }, { read = (text) => text, write = (value) => value } = {}) {
  const defaultValue = element('option', { value: '' });
  const input = element('select', { id, onchange });
  return {
    node: input,
    inputs: [input],
    read: () => (input.value === '' ? undefined : read(input.value)),
    write: (value) => {
      const kept = missing(value) ? '' : write(value);
      const known = choices();
      const extra = kept && !known.some(([name]) => name === kept) ? [[kept, kept]] : [];
      const options = [...known, ...extra].map(([name, words]) => element('option', { value: name }, words));
      input.replaceChildren(defaultValue, ...options);
      input.value = kept;
    },
    showDefault: (value) => { defaultValue.textContent = missing(value) ? none : `${write(value)} (default)`; },
  };
}

/** Several names in a row. */
function tuple(length, { id, label, choices, onchange }) {
  const parts = Array.from({ length }, (_, index) => picker({ id: index ? `${id}-${index}` : id, choices, onchange }));
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
