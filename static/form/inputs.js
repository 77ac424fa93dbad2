/** Controls for single values. Each reads and writes plain JSON values; an empty one means "the default holds". */

import { element } from '../elements.js';

/**
 * @typedef {{node: HTMLElement, inputs: HTMLElement[], read: () => unknown, write: (value: unknown) => void,
 *            suggest: (value: unknown) => void}} Control
 */

/**
 * @param {import('./schema.js').Field} field
 * @param {{id: string, choices?: () => [string, string][], onchange: () => void}} options
 * @returns {Control}
 */
export function control(field, options) {
  if (options.choices) return field.kind === 'tuple' ? tuple(field.length, options) : suggestions(options);
  switch (field.kind) {
    case 'choice': return choice(field.choices, options);
    case 'boolean': return choice(['yes', 'no'], options, { read: (text) => text === 'yes', write: (value) => (value ? 'yes' : 'no') });
    case 'integer':
    case 'number': return line(options, { read: numberOf, write: String, mode: field.kind === 'integer' ? 'numeric' : 'decimal' });
    case 'list': return field.items.enum ? ticks(field.items.enum, options) : line(options, listOf(field.items.type));
    case 'tuple': return line(options, listOf('string'));
    default: return line(options, { read: (text) => text, write: String });
  }
}

/** What was typed, as a number where it is one: what is none goes to the server, whose answer says so. */
function numberOf(text) {
  const number = Number(text);
  return Number.isFinite(number) && /\d/.test(text) ? number : text;
}

function listOf(type) {
  const one = type === 'integer' || type === 'number' ? numberOf : (text) => text;
  return {
    read: (text) => text.split(',').map((part) => part.trim()).filter(Boolean).map(one),
    write: (value) => [value].flat().join(', '),
  };
}

function line({ id, onchange }, { read, write, mode }) {
  const input = element('input', { id, type: 'text', inputmode: mode, spellcheck: false, autocomplete: 'off', oninput: onchange });
  return {
    node: input,
    inputs: [input],
    read: () => (input.value.trim() === '' ? undefined : read(input.value.trim())),
    write: (value) => { input.value = value === undefined || value === null ? '' : write(value); },
    suggest: (value) => { input.placeholder = value === undefined || value === null ? '' : write(value); },
  };
}

function choice(choices, { id, onchange }, { read = (text) => text, write = (value) => value } = {}) {
  const usual = element('option', { value: '' }, 'default');
  const input = element('select', { id, onchange }, usual, choices.map((name) => element('option', { value: name }, name)));
  return {
    node: input,
    inputs: [input],
    read: () => (input.value === '' ? undefined : read(input.value)),
    write: (value) => { input.value = value === undefined || value === null ? '' : write(value); },
    suggest: (value) => { usual.textContent = value === undefined || value === null ? 'none' : `${write(value)} (default)`; },
  };
}

/** Names that the server knows; one that it does not is kept, and its answer says so. */
function suggestions({ id, choices, onchange }) {
  const usual = element('option', { value: '' });
  const input = element('select', { id, onchange });
  const fill = (kept) => {
    const known = choices();
    const extra = kept && !known.some(([name]) => name === kept) ? [[kept, kept]] : [];
    input.replaceChildren(usual, ...[...known, ...extra].map(([value, words]) => element('option', { value }, words)));
    input.value = kept ?? '';
  };
  fill();
  return {
    node: input,
    inputs: [input],
    read: () => (input.value === '' ? undefined : input.value),
    write: fill,
    suggest: (value) => { usual.textContent = value === undefined || value === null ? 'none' : `${value} (default)`; },
  };
}

/** Several names in a row, each chosen from those that there are. */
function tuple(length, { id, label, choices, onchange }) {
  const parts = Array.from({ length }, (_, index) => suggestions({ id: index ? `${id}-${index}` : id, choices, onchange }));
  parts.forEach(({ node }, index) => { node.setAttribute('aria-label', `${label} ${index + 1}`); });
  return {
    node: element('div.row.tuple', {}, parts.map(({ node }) => node)),
    inputs: parts.map(({ node }) => node),
    read: () => {
      const names = parts.map((part) => part.read() ?? '');
      return names.every((name) => name === '') ? undefined : names;
    },
    write: (value) => parts.forEach((part, index) => part.write(value?.[index])),
    suggest: () => parts.forEach((part) => part.suggest(undefined)),
  };
}

function ticks(choices, { id, onchange }) {
  let usual = [];
  const boxes = choices.map((name, index) => element('input', { type: 'checkbox', id: index ? `${id}-${name}` : id, value: name, onchange }));
  const read = () => boxes.filter((box) => box.checked).map((box) => box.value);
  const tick = (names) => boxes.forEach((box) => { box.checked = names.includes(box.value); });
  return {
    node: element('div.row.ticks', {}, boxes.map((box) => element('label', {}, box, box.value))),
    inputs: boxes,
    read: () => (read().join() === usual.join() ? undefined : read()),
    write: (value) => tick(value ?? usual),
    suggest: (value) => { usual = value ?? []; },
  };
}
