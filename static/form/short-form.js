/** The short form of a spec: data, network, how much to prune, and quality. It changes the same spec as the full form. */

import { element, uniqueId } from '../elements.js';
import { formField } from './field.js';
import { prunedMinimum, pruningOf, qualityOf, setPruning, setQuality } from './short-choices.js';
import { setValue, valueAt } from './spec-values.js';

const PRUNING_TEXT = {
  none: ['Nothing', 'compares two networks from different seeds'],
  some: ['Some', '30 % of the filters become zero'],
  half: ['More than half', '60 % of the filters become zero'],
  most: ['Most', '80 % of the filters become zero; accuracy suffers'],
};
const QUALITY_TEXT = {
  draft: ['Draft', '20 epochs, 15 x 15 points: a first look'],
  normal: ['Normal', '120 epochs, 41 x 41 points'],
  fine: ['Fine', '240 epochs, 81 x 81 points'],
};

export class ShortForm {
  /** @param {{schema: object, models: object[], choices: Function, onchange: () => void}} options */
  constructor({ schema, models, choices, onchange }) {
    this.schema = schema;
    this.models = models;
    this.choices = choices;
    this.onchange = onchange;
    this.node = element('section.panel.short');
    this.values = {};
    this.removed = null;
  }

  /** Shows a spec. Choices change it in place. */
  show(values) {
    this.values = values;
    const { properties } = this.schema.submission();
    const describe = (node) => this.schema.describe(node);
    const network = describe(describe(properties.model).properties.name);
    this.fields = {
      dataset: this.#field(['dataset'], describe(properties.dataset), { label: 'Data', choices: () => this.choices(['dataset'], values) }),
      model: this.#field(['model', 'name'], network, {
        label: 'Network',
        choices: () => this.models.map(({ name, description }) => [name, `${name}: ${description}`]),
        change: (name) => { if (name === undefined) delete values.model; else if (name !== (values.model?.name ?? 'cnn')) values.model = { name }; },
      }),
      pruning: this.#radios('How much to prune', PRUNING_TEXT, pruningOf(values), this.#customPruning(), (level) => this.#prune(level)),
      quality: this.#radios('Quality', QUALITY_TEXT, qualityOf(values), ['As in all settings', 'epochs and grids are set there'], (level) => { setQuality(values, level); this.#changed(); }),
      name: this.#field(['name'], describe(properties.name), { label: 'Name' }),
    };
    this.node.replaceChildren(element('h2', {}, 'A new experiment'), ...Object.values(this.fields).map(({ node }) => node));
  }

  /** @returns {string[]} messages without a field here */
  showErrors(errors) {
    const found = {};
    const unplaced = [];
    for (const [path, message] of Object.entries(errors)) {
      const place = placeOf(path);
      if (place) found[place] ??= message;
      else unplaced.push(`${path}: ${message}`);
    }
    for (const [name, { showError }] of Object.entries(this.fields)) showError(found[name] ?? null);
    return unplaced;
  }

  focusFirstError() {
    this.node.querySelector('[aria-invalid="true"]')?.focus();
  }

  #field(path, field, { label, choices, change }) {
    return formField({ ...field, description: choices ? '' : field.description }, {
      path, label, choices, value: valueAt(this.values, path), defaultValue: field.fallback,
      onchange: (value) => {
        if (change) change(value);
        else setValue(this.values, path, value);
        this.#changed();
      },
    });
  }

  /** "None" removes a minimum with its curves and planes: they come back with the next choice. */
  #prune(level) {
    if (level === 'none') this.removed = JSON.stringify(this.values);
    else if (this.removed && !prunedMinimum(this.values)) {
      const { minima, curves, planes, verdict } = JSON.parse(this.removed);
      for (const [name, value] of Object.entries({ minima, curves, planes, verdict })) {
        if (value === undefined) delete this.values[name];
        else this.values[name] = value;
      }
    }
    setPruning(this.values, level);
    this.#changed();
  }

  #customPruning() {
    const name = prunedMinimum(this.values);
    const { c, target, sparsity } = (name && this.values.minima[name]) ?? {};
    const words = sparsity !== undefined ? `${100 * sparsity} % of the groups` : target !== undefined ? `threshold G = ${target}` : c !== undefined ? `c = ${c}` : 'the default c';
    return ['As in all settings', words];
  }

  #radios(title, texts, chosen, custom, onchoose) {
    const id = uniqueId('choice');
    const shown = { ...texts, ...(chosen === 'custom' ? { custom } : {}) };
    const error = element('p.wrong', { id: `${id}-error`, hidden: true });
    const inputs = Object.keys(shown).map((level) => element('input', {
      type: 'radio', name: id, value: level, id: `${id}-${level}`, checked: level === chosen, 'aria-describedby': `${id}-error`,
      onchange: () => {
        if (level === 'custom') return;
        document.getElementById(`${id}-custom`)?.closest('label').remove(); // it is no longer what the settings are
        onchoose(level);
      },
    }));
    return {
      node: element('fieldset.choices', {}, element('legend.label', {}, title),
        element('div.cards', {}, inputs.map((input) => element('label.card', { for: input.id }, input,
          element('span', {}, element('strong', {}, shown[input.value][0]), element('small.soft', {}, shown[input.value][1]))))), error),
      showError: (message) => {
        error.textContent = message ?? '';
        error.hidden = !message;
        for (const input of inputs) {
          if (message) input.setAttribute('aria-invalid', 'true');
          else input.removeAttribute('aria-invalid');
        }
      },
    };
  }

  #changed() {
    this.onchange();
  }
}

/** The field of the short form that an error of the spec concerns. */
function placeOf(path) {
  if (path === 'dataset' || path === 'name') return path;
  if (path.split('.')[0] === 'model') return 'model';
  if (/^minima\.[^.]+\.(sparsity|target|c)$/.test(path)) return 'pruning';
  if (path === 'training.epochs' || path === 'points' || /^(curves|planes)\.[^.]+\.(epochs|resolution)$/.test(path)) return 'quality';
  return null;
}
