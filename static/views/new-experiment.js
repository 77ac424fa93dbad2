/** A new experiment: the short form, all settings behind one click, the cost, and the same request as curl and Python. */

import { element, uniqueId } from '../elements.js';
import { codeBlock } from '../components/copy-button.js';
import { tabs } from '../components/tabs.js';
import { SpecForm } from '../form/spec-form.js';
import { ShortForm } from '../form/short-form.js';
import { Schema } from '../form/schema.js';
import { formField } from '../form/field.js';
import { costEstimate } from './cost-estimate.js';
import { curl, python } from '../components/code-snippets.js';
import { RunBar } from './run-bar.js';
import { Origin } from './origin.js';
import { uploads } from './checkpoint-uploads.js';

const TYPING_DELAY = 500;
const BLANK = { minima: { sgd: { optimizer: 'sgd' } } };
const copy = (value) => JSON.parse(JSON.stringify(value));

export default async function mount(body, { api, urlState, navigate, announce, title }) {
  const [document_, recipes, models, datasets, optimizers] = await Promise.all(
    ['/api/openapi.json', '/api/recipes', '/api/models', '/api/datasets', '/api/optimizers'].map((path) => api.get(path)),
  );
  const schema = new Schema(document_);
  const extras = { values: {} };
  let checkpoints = [];
  let typing = 0;
  let short = true;

  const full = new SpecForm(schema, { models: models.items, choices, onchange: changed });
  const brief = new ShortForm({ schema, models: models.items, choices, onchange: changed });
  const form = () => (short ? brief : full);
  const origin = new Origin(api, title);
  const chooser = recipeChooser();
  const cost = element('div');
  const asCurl = codeBlock('The same by curl');
  const asPython = codeBlock('The same by Python');
  const asJson = codeBlock('The spec as JSON');
  const priority = formField(schema.describe(schema.submission().properties.priority), {
    path: ['priority'], defaultValue: 100, onchange: (value) => { extras.values.priority = value; changed(); },
  });
  const force = element('input', { type: 'checkbox', id: uniqueId('force'), onchange: () => { extras.values.force = force.checked || undefined; changed(); } });
  const forceOption = element('label.row', { hidden: true }, force, 'Run anyway, above the limit of this server');
  const bar = new RunBar({
    api,
    navigate,
    onEstimate: (found) => {
      form().showErrors({});
      priority.showError(null);
      cost.replaceChildren(costEstimate(found, Object.keys(form().values.minima ?? {})));
      forceOption.hidden = found.allowed;
    },
    onErrors: showErrors,
    onInvalid: () => form().focusFirstError(),
  });
  bar.node.insertBefore(forceOption, bar.node.lastChild);
  const upload = uploads({
    api,
    currentModel: () => ({ model: { name: 'cnn', ...full.values.model }, dataset: full.values.dataset ?? 'digits', loss: full.values.loss ?? 'cross_entropy' }),
    onUse: ({ id, name }) => { if (!short) announce(`${full.add('minima', name, { checkpoint: id })} added as a minimum`); },
    onList: (items) => { checkpoints = items; },
    onRemove: () => estimate(),
    active: () => !short,
  });
  const toggle = element('button', { type: 'button', onclick: () => {
    clearTimeout(typing);
    urlState.push({ settings: short ? 'all' : 'short', spec: address() });
  } });
  const left = element('div.left');
  const right = element('div.right');
  body.append(element('form.new', { novalidate: true, onsubmit: (event) => { event.preventDefault(); clearTimeout(typing); bar.submit(); } },
    left, right, bar.node));
  await start();
  return {
    update: (query) => { if (query.spec !== address() || query.recipe !== chooser.shown || isShort(query) !== short) start(); },
    unmount: () => { clearTimeout(typing); bar.close(); upload.close(); },
  };

  /** Fills the form from the URL: a draft, a recipe, another experiment's spec, or the demo. */
  async function start() {
    const query = urlState.get();
    const { spec, recipe, from } = query;
    let values = null;
    try {
      values = spec ? JSON.parse(spec) : null;
    } catch { /* a broken link: use the recipe */ }
    const asked = location.search;
    await origin.load(from);
    if (location.search !== asked) return; // the URL changed meanwhile
    if (!values && origin.spec) values = { ...copy(origin.spec), name: origin.newName };
    const known = recipes.items.find((entry) => entry.name === (recipe ?? recipes.demo));
    const draft = values && (from && !spec ? `The spec of ${origin.name}.` : 'Your draft.');
    chooser.show(recipe === 'blank' || (!recipe && values) ? 'blank' : known?.name ?? recipes.demo, draft);
    chooser.shown = recipe;
    short = isShort(query);
    arrange();
    form().show(copy(values ?? (recipe === 'blank' ? BLANK : (known ?? recipes.items.find((entry) => entry.name === recipes.demo)).spec)));
    markChanges();
    estimate(); // not awaited, so the view is mounted before the URL can change
  }

  /** Puts the parts of the short or of the full form on the page. */
  function arrange() {
    toggle.replaceChildren(short ? 'All settings' : 'Fewer settings');
    left.replaceChildren(...[origin.node, ...(short ? [brief.node] : [chooser.node, full.node, upload.node, ways()])].filter(Boolean));
    right.replaceChildren(element('section.panel', {}, element('h2', {}, 'Estimated cost'), cost, short ? null : priority.node));
    bar.node.querySelector('.run-line').prepend(toggle);
  }

  function ways() {
    return element('section.panel.ways', {}, element('h2', {}, 'Submit without this page'), tabs('Ways to submit', [
      { name: 'curl', title: 'curl', content: asCurl.node },
      { name: 'python', title: 'Python', content: asPython.node },
      { name: 'spec', title: 'Spec', content: asJson.node },
    ]));
  }

  function changed() {
    bar.invalidate();
    cost.classList.add('outdated');
    markChanges();
    showSnippets(submission());
    clearTimeout(typing);
    typing = setTimeout(() => {
      const spec = address();
      const usual = isShort({ ...urlState.get(), settings: undefined, spec });
      urlState.set({ spec, settings: usual === short ? null : short ? 'short' : 'all' });
      estimate();
    }, TYPING_DELAY);
  }

  function markChanges() {
    origin.show(form().values);
    if (!short) full.markChanges(origin.spec);
  }

  /** The draft for the URL; undefined while the form holds an unchanged recipe or the origin with its new name. */
  function address() {
    const text = JSON.stringify(form().values);
    const recipe = recipes.items.find((entry) => entry.name === chooser.value);
    const untouched = origin.spec && JSON.stringify({ ...origin.spec, name: origin.newName });
    return (recipe && JSON.stringify(recipe.spec) === text) || untouched === text ? undefined : text;
  }

  function submission() {
    const { values } = form();
    const recipe = recipes.items.find((entry) => entry.name === chooser.value);
    const same = recipe && JSON.stringify(recipe.spec) === JSON.stringify(values);
    return { ...(same ? { recipe: recipe.name } : values), ...extras.values };
  }

  function showSnippets(sent) {
    asCurl.show(curl(sent));
    asPython.show(python(sent));
    asJson.show(JSON.stringify({ ...form().values, ...extras.values }, null, 2));
  }

  async function estimate() {
    const sent = copy(submission());
    showSnippets(sent);
    cost.classList.add('outdated');
    if (!cost.firstChild) cost.replaceChildren(element('p.soft', {}, 'Estimating …'));
    await bar.estimate(sent);
    cost.classList.remove('outdated');
  }

  /** Shows each error at its field. @returns {string} what to say above the button */
  function showErrors(error) {
    const fields = error.fields ?? {};
    const unplaced = form().showErrors(Object.fromEntries(Object.entries(fields).filter(([path]) => path !== 'priority')));
    priority.showError(fields.priority ?? null);
    cost.replaceChildren(element('p.soft', {}, Object.keys(fields).length ? 'Correct the fields to see the cost.' : 'The cost is not known.'));
    if (error.code === 'too-expensive') forceOption.hidden = false;
    const count = Object.keys(fields).length;
    if (unplaced.length) return [...unplaced, ...(short ? ['Open “All settings” to change it.'] : [])].join('\n');
    return count ? `${count === 1 ? 'One field is' : `${count} fields are`} wrong. See the message beside each field.` : error.message;
  }

  /** Known names for a field, from the server or the rest of the form. */
  function choices(path, values) {
    const name = path.at(-1);
    const minima = Object.keys(values.minima ?? {}).map((entry) => [entry, entry]);
    if (name === 'dataset') return datasets.items.map((entry) => [entry.name, entry.present === false ? `${entry.name} (downloaded at first use)` : entry.name]);
    if (name === 'optimizer') return optimizers.items.map((entry) => [entry.name, entry.name]);
    if (name === 'checkpoint') return checkpoints.map((entry) => [entry.id, `${entry.name} (${entry.id})`]);
    if (name === 'of') return minima.filter(([entry]) => entry !== path[1]);
    if (['from', 'to', 'around', 'trajectory', 'control', 'between'].includes(name)) return minima;
    if (name === 'through') return [...minima, ...bends(values).map((bend) => [bend, bend])];
    return null;
  }

  function recipeChooser() {
    const id = uniqueId('recipe');
    const about = element('p.hint', { id: `${id}-hint` });
    const field = element('select', { id, 'aria-describedby': `${id}-hint`, onchange: () => {
      urlState.push({ recipe: field.value, spec: null, from: null });
    } }, element('option', { value: 'blank' }, 'blank'), recipes.items.map(({ name }) => element('option', { value: name }, name === recipes.demo ? `${name} (the demo)` : name)));
    return {
      node: element('section.panel.chooser', {}, element('h2', {}, element('label', { for: id }, 'Start from')), field, about),
      get value() { return field.value; },
      /** @param {string | null} draft a note on the draft, if the form does not hold the recipe unchanged */
      show(name, draft) {
        field.value = name;
        const described = recipes.items.find((entry) => entry.name === name)?.description;
        about.textContent = draft ?? described ?? 'An empty spec, all settings at their defaults.';
      },
    };
  }
}

/** A link to a spec, a recipe or an experiment to vary opens all settings, unless it says otherwise. */
const isShort = ({ settings, spec, recipe, from }) => (settings ? settings !== 'all' : !(spec || recipe || from));

/** Bends of the curves, which a plane may go through. */
function bends(values) {
  const curves = values.curves ?? { valley: {} };
  return Object.entries(curves).flatMap(([name, { bends: count = 1 }]) => (
    Number(count) > 1 ? Array.from({ length: Math.min(8, Number(count)) }, (_, index) => `${name}.bend${index + 1}`) : [`${name}.bend`]));
}
