/** A form for a spec, built from its JSON schema. layout.js says what is shown first; the rest is under "More settings". */

import { element, icon } from '../elements.js';
import { formField } from './field.js';
import { NOT_IN_SPEC, SECTIONS, firstFields } from './layout.js';
import { freeName, renameKey, renameReferences, setValue, valueAt } from './spec-values.js';
import { words } from './schema.js';

/** Fields whose value changes which other fields are shown. */
const LAYOUT_FIELDS = ['optimizer', 'method', 'checkpoint', 'through', 'around', 'trajectory'];

export class SpecForm {
  /**
   * @param {import('./schema.js').Schema} schema
   * @param {{models: object[], choices: (path: string[], values: object) => [string, string][] | null, onchange: () => void}} options
   */
  constructor(schema, { models, choices, onchange }) {
    this.schema = schema;
    this.models = models;
    this.choices = choices;
    this.onchange = onchange;
    this.root = schema.submission();
    this.values = {};
    this.fields = new Map();
    this.opened = new Set();
    this.node = element('div.sections');
  }

  /** Shows a spec. Typing changes it in place. */
  show(values) {
    this.values = values;
    this.#render();
  }

  /**
   * Shows error messages at their fields.
   * @param {Record<string, string>} errors by path
   * @returns {string[]} messages without a field on the page
   */
  showErrors(errors) {
    const found = new Map();
    const unplaced = [];
    for (const [path, message] of Object.entries(errors)) {
      const parts = path.split('.');
      while (parts.length && !this.fields.has(parts.join('.'))) parts.pop();
      if (parts.length) found.set(parts.join('.'), message);
      else unplaced.push(`${path}: ${message}`);
    }
    for (const [path, { showError, node }] of this.fields) {
      showError(found.get(path) ?? null);
      if (found.has(path)) node.closest('details')?.setAttribute('open', '');
    }
    return unplaced;
  }

  /**
   * Marks the fields whose value differs from that of another spec.
   * @param {object | null} origin none: no marks
   */
  markChanges(origin) {
    this.origin = origin;
    for (const [path, { node }] of this.fields) {
      const parts = path.split('.');
      if (!node.classList.contains('field')) continue;
      const same = JSON.stringify(valueAt(this.values, parts)) === JSON.stringify(valueAt(origin, parts));
      const entry = parts.length === 2 && ['minima', 'curves', 'planes'].includes(parts[0]);
      const changed = Boolean(origin) && (entry ? !(parts[1] in (origin[parts[0]] ?? {})) : !same);
      node.classList.toggle('changed', changed);
      node.querySelector('.changed-mark')?.remove();
      if (changed) node.querySelector('.label').append(element('span.changed-mark', {}, ' changed'));
    }
  }

  focusFirstError() {
    const wrong = this.node.querySelector('[aria-invalid="true"]');
    wrong?.focus();
    wrong?.scrollIntoView({ block: 'center' });
  }

  /** Adds an entry to a map, such as a minimum, and shows it. */
  add(map, base, value = {}) {
    const entries = this.values[map] ?? {};
    const name = freeName(Object.keys(entries), base);
    this.values[map] = { ...entries, [name]: value };
    this.#rebuild([map, name]);
    return name;
  }

  #render() {
    this.fields.clear();
    const { properties, required = [] } = this.root;
    const named = SECTIONS.flatMap(([, names]) => names);
    const rest = Object.keys(properties).filter((name) => !named.includes(name) && !NOT_IN_SPEC.includes(name));
    const sections = rest.length ? [...SECTIONS, ['More', rest]] : SECTIONS;
    this.node.replaceChildren(...sections.map(([title, names]) => {
      const present = names.filter((name) => name in properties);
      const parts = present.flatMap((name) => this.#build([name], properties[name], required.includes(name), present.length === 1));
      return element('section.panel', { 'data-section': title }, element('h2', {}, title), ...groupFields(parts));
    }));
  }

  /** The elements for a part of the schema: fields, and wider blocks. */
  #build(path, node, required, alone = false) {
    const field = this.schema.describe(node, required);
    if (field.kind === 'map') return [this.#map(path, field)];
    if (field.kind === 'union') return this.#union(path, field);
    if (field.kind === 'object' && field.open) return this.#network(path, field);
    if (field.kind === 'object') {
      const parts = this.#object(path, field);
      return alone ? parts : [element('h3.subheading', {}, words(path.at(-1))), ...parts];
    }
    return [this.#formField(path, field)];
  }

  #formField(path, field, { label, structural = false, choices } = {}) {
    const made = formField(field, {
      path,
      label,
      value: valueAt(this.values, path),
      defaultValue: this.#defaultValue(path, field),
      choices: choices ?? (this.choices(path, this.values) ? () => this.choices(path, this.values) : undefined),
      onchange: (value) => {
        setValue(this.values, path, value, keepsEmpty);
        if (structural || LAYOUT_FIELDS.includes(path.at(-1))) this.#rebuild(path);
        else this.#changed(path);
      },
    });
    this.fields.set(path.join('.'), { ...made, refresh: () => made.showDefault(this.#defaultValue(path, field)) });
    return made.node;
  }

  /** The default of a field. Minima inherit from `training` and the spec's seed. */
  #defaultValue(path, field) {
    const [map, , name] = path;
    if (map !== 'minima') return field.fallback;
    return this.values.training?.[name] ?? (name === 'seed' ? this.values.seed : undefined) ?? field.fallback;
  }

  #object(path, field) {
    const given = valueAt(this.values, path) ?? {};
    const first = firstFields(field.title, { ...this.values.training, ...given }, field.properties);
    const shown = Object.keys(field.properties).filter((name) => first.includes(name) || name in given);
    shown.sort((a, b) => rank(first, a) - rank(first, b));
    const rest = Object.keys(field.properties).filter((name) => !shown.includes(name));
    const build = (name) => this.#build([...path, name], field.properties[name], field.required.includes(name));
    const parts = shown.flatMap(build);
    if (!rest.length) return parts;
    const key = path.join('.');
    return [...parts, element('details.more', { open: this.opened.has(key), ontoggle: ({ target }) => this.opened[target.open ? 'add' : 'delete'](key) },
      element('summary', {}, `More settings (${rest.length})`), ...groupFields(rest.flatMap(build)))];
  }

  #union(path, field) {
    const given = valueAt(this.values, path);
    const defaultValue = this.#defaultValue(path, field);
    const tag = [...path, field.tag];
    const kind = this.#formField(tag, { kind: 'choice', choices: Object.keys(field.variants), description: field.description, fallback: defaultValue?.[field.tag] },
      { label: words(path.at(-1)), structural: true });
    this.fields.get(tag.join('.')).showDefault(defaultValue?.[field.tag]);
    const variant = field.variants[given?.[field.tag]];
    if (!variant) return [kind];
    const rest = Object.keys(variant.properties).filter((name) => name !== field.tag);
    return [kind, ...rest.flatMap((name) => this.#build([...path, name], variant.properties[name], (variant.required ?? []).includes(name)))];
  }

  /** A network: its name and the options of that network. */
  #network(path, field) {
    const name = this.#formField([...path, 'name'], this.schema.describe(field.properties.name),
      { label: 'model', structural: true, choices: () => this.models.map((model) => [model.name, model.name]) });
    const chosen = valueAt(this.values, [...path, 'name']) ?? field.properties.name.default;
    const model = this.models.find((entry) => entry.name === chosen);
    if (model) {
      name.querySelector('.hint').textContent = model.description;
      name.title = `needs ${model.needs}`;
    }
    const given = Object.keys(valueAt(this.values, path) ?? {}).filter((option) => option !== 'name');
    const options = [...new Set([...Object.keys(model?.options ?? {}), ...given])];
    return [name, ...options.map((option) => this.#formField([...path, option], optionField(model?.options[option], chosen)))];
  }

  #map(path, field) {
    const name = path.at(-1);
    const entries = this.values[name];
    const one = { minima: 'minimum', curves: 'curve', planes: 'plane' }[name] ?? 'entry';
    const inner = this.schema.describe(field.items);
    const cards = Object.keys(entries ?? {}).map((key) => element('fieldset.entry', {},
      element('legend.visually-hidden', {}, `${one} ${key}`),
      ...groupFields([this.#nameField(name, key), ...this.#object([name, key], inner)]),
      element('button.plain.remove', { type: 'button', 'aria-label': `Remove ${key}`, title: 'Remove', onclick: () => this.#remove(name, key) }, icon('bin'))));
    const about = element('p.hint', {}, field.description);
    const wrong = element('p.wrong', { hidden: true });
    const node = element('div.map', {}, about, ...cards, element('div.row', {},
      element('button', { type: 'button', onclick: () => this.add(name, one), disabled: cards.length >= (field.most ?? Infinity) }, icon('plus'), `Add a ${one}`),
      field.optional && entries ? element('button.plain', { type: 'button', onclick: () => { delete this.values[name]; this.#rebuild(path); } }, 'Use the default') : null), wrong);
    this.fields.set(name, { node, focus: () => {}, showDefault: () => {}, showError: (message) => { wrong.textContent = message ?? ''; wrong.hidden = !message; } });
    return node;
  }

  #nameField(map, key) {
    const path = [map, key];
    const made = formField({ kind: 'text', description: '' }, { path, label: 'name', value: key, onchange: () => {} });
    const input = made.node.querySelector('input');
    input.addEventListener('change', () => {
      const name = input.value.trim();
      if (!name || name in this.values[map]) { input.value = key; return; }
      renameKey(this.values[map], key, name);
      renameReferences(this.values, map, key, name);
      this.#rebuild([map, name]);
    });
    this.fields.set(path.join('.'), made);
    return made.node;
  }

  #remove(map, key) {
    delete this.values[map][key];
    this.#rebuild([map]);
  }

  #rebuild(path) {
    this.#render();
    this.fields.get(path.join('.'))?.focus();
    this.#changed(path);
  }

  #changed([first]) {
    if (first === 'training' || first === 'seed') {
      for (const [path, { refresh }] of this.fields) if (path.startsWith('minima.')) refresh?.();
    }
    this.onchange();
  }
}

const rank = (first, name) => (first.indexOf(name) + first.length + 1) % (first.length + 1);

/** An empty entry of a map is kept: it has all defaults. */
const keepsEmpty = (path) => path.length === 2 && ['minima', 'curves', 'planes'].includes(path[0]);

function optionField(fallback, model) {
  const whole = Number.isInteger(fallback) ? 'integer' : 'number';
  const kind = Array.isArray(fallback) ? 'list' : { number: whole, boolean: 'boolean' }[typeof fallback] ?? 'text';
  return { kind, items: { type: 'number' }, optional: true, fallback, description: `option of ${model}` };
}

/** Puts neighbouring fields into one grid; wider parts stay between them. */
function groupFields(parts) {
  const blocks = [];
  for (const part of parts) {
    if (!part.classList.contains('field')) blocks.push(part);
    else if (blocks.at(-1)?.classList.contains('fields')) blocks.at(-1).append(part);
    else blocks.push(element('div.fields', {}, part));
  }
  return blocks;
}
