/** The form for a new experiment: recipe or blank, cost estimate, and the same request as curl and Python. */

import { element, icon, uniqueId } from '../elements.js';
import { codeBlock } from '../components/copy-button.js';
import { problem } from '../components/problem.js';
import { tabs } from '../components/tabs.js';
import { SpecForm } from '../form/spec-form.js';
import { Schema } from '../form/schema.js';
import { formField } from '../form/field.js';
import { costEstimate } from './cost-estimate.js';
import { curl, python } from '../components/code-snippets.js';
import { uploads } from './checkpoint-uploads.js';

const TYPING_DELAY = 500;
const BLANK = { minima: { sgd: { optimizer: 'sgd' } } };
const copy = (value) => JSON.parse(JSON.stringify(value));

export default async function mount(root, { api, urlState, navigate, announce }) {
  document.title = 'New experiment · Valleyscope';
  const page = element('div.page', {}, element('div.head', {}, element('h1', { tabIndex: -1 }, 'New experiment')), skeleton());
  root.append(page);
  const [document_, recipes, models, datasets] = await Promise.all(
    ['/api/openapi.json', '/api/recipes', '/api/models', '/api/datasets'].map((path) => api.get(path)),
  );
  const schema = new Schema(document_);
  let checkpoints = [];
  let submission = {};
  let key = '';
  let typing = 0;
  let pending = null;
  let sending = false;

  const form = new SpecForm(schema, { models: models.items, choices, onchange: changed });
  const chooser = recipeChooser();
  const errorBox = element('div');
  const cost = element('div', { 'aria-live': 'polite' });
  const asCurl = codeBlock('The same by curl');
  const asPython = codeBlock('The same by Python');
  const asJson = codeBlock('The spec as JSON');
  const extras = { values: {} };
  const priority = formField(schema.describe(schema.submission().properties.priority), {
    path: ['priority'], defaultValue: 100, onchange: (value) => { extras.values.priority = value; changed(); },
  });
  const force = element('input', { type: 'checkbox', id: uniqueId('force'), onchange: () => { extras.values.force = force.checked || undefined; changed(); } });
  const forceOption = element('label.row', { hidden: true }, force, 'Run anyway, above the limit of this server');
  const button = element('button.primary', { type: 'submit' }, icon('play'), 'Run it');
  const upload = uploads({
    api,
    currentModel: () => ({ model: { name: 'cnn', ...form.values.model }, dataset: form.values.dataset ?? 'digits' }),
    onUse: ({ id, name }) => announce(`${form.add('minima', name, { checkpoint: id })} added as a minimum`),
    onList: (items) => { checkpoints = items; },
    onRemove: () => estimate(),
  });

  page.lastChild.replaceWith(element('form.new', { novalidate: true, onsubmit: (event) => { event.preventDefault(); submit(); } },
    element('div.left', {}, chooser.node, form.node, upload.node,
      element('section.panel.ways', {}, element('h2', {}, 'Submit without this page'), tabs('Ways to submit', [
        { name: 'curl', title: 'curl', content: asCurl.node },
        { name: 'python', title: 'Python', content: asPython.node },
        { name: 'spec', title: 'Spec', content: asJson.node },
      ]))),
    element('div.right', {},
      element('section.panel', {}, element('h2', {}, 'Estimated cost'), cost, forceOption, errorBox, priority.node, button))));
  await start();
  return {
    update: (query) => { if (query.spec !== address() || query.recipe !== chooser.shown) start(); },
    unmount: () => { clearTimeout(typing); pending?.abort(); upload.close(); },
  };

  /** Fills the form from the URL: a draft, a recipe, another experiment's spec, or the demo. */
  async function start() {
    const { spec, recipe, from } = urlState.get();
    let values = null;
    try {
      values = spec ? JSON.parse(spec) : null;
    } catch { /* a broken link: use the recipe */ }
    const asked = location.search;
    if (!values && from) values = (await api.get(`/api/experiments/${from}`)).spec;
    if (location.search !== asked) return; // the URL changed meanwhile
    const known = recipes.items.find((entry) => entry.name === (recipe ?? recipes.demo));
    const draft = values && (from && !spec ? 'The spec of another experiment.' : 'Your draft.');
    chooser.show(recipe === 'blank' || (!recipe && values) ? 'blank' : known?.name ?? recipes.demo, draft);
    chooser.shown = recipe;
    form.show(copy(values ?? (recipe === 'blank' ? BLANK : (known ?? recipes.items.find((entry) => entry.name === recipes.demo)).spec)));
    updateSubmission();
    estimate(); // not awaited, so the view is mounted before the URL can change
  }

  function changed() {
    updateSubmission();
    clearTimeout(typing);
    typing = setTimeout(() => {
      urlState.set({ spec: address(), from: null });
      estimate();
    }, TYPING_DELAY);
  }

  /** The draft for the URL; undefined while the form holds an unchanged recipe. */
  function address() {
    const text = JSON.stringify(form.values);
    const recipe = recipes.items.find((entry) => entry.name === chooser.value);
    return recipe && JSON.stringify(recipe.spec) === text ? undefined : text;
  }

  function updateSubmission() {
    const recipe = recipes.items.find((entry) => entry.name === chooser.value);
    const same = recipe && JSON.stringify(recipe.spec) === JSON.stringify(form.values);
    submission = { ...(same ? { recipe: recipe.name } : form.values), ...extras.values };
    key = crypto.randomUUID?.() ?? String(Math.random());
    asCurl.show(curl(submission));
    asPython.show(python(submission));
    asJson.show(JSON.stringify({ ...form.values, ...extras.values }, null, 2));
  }

  async function estimate() {
    pending?.abort();
    pending = new AbortController();
    const { signal } = pending;
    if (!cost.firstChild) cost.replaceChildren(element('p.soft', {}, 'Estimating …'));
    cost.classList.add('outdated');
    try {
      const found = await api.post('/api/estimate', submission, { signal });
      form.showErrors({});
      priority.showError(null);
      errorBox.replaceChildren();
      cost.replaceChildren(costEstimate(found, Object.keys(form.values.minima ?? {})));
      forceOption.hidden = found.allowed;
      if (!found.allowed) errorBox.replaceChildren(problem(new Error(`This exceeds the server's limit of ${found.limit_gpu_hours} GPU hours. Make it smaller, or choose “Run anyway”.`)));
    } catch (error) {
      if (!signal.aborted) showErrors(error);
    } finally {
      if (!signal.aborted) cost.classList.remove('outdated');
    }
  }

  async function submit() {
    if (sending) return;
    sending = true;
    button.disabled = true;
    clearTimeout(typing);
    pending?.abort();
    try {
      const made = await api.post('/api/experiments', submission, { headers: { 'Idempotency-Key': key } });
      navigate(`/experiments/${made.id}`);
    } catch (error) {
      showErrors(error);
      form.focusFirstError();
    } finally {
      sending = false;
      button.disabled = false;
    }
  }

  /** Shows each error at its field; errors without a field go above the button. */
  function showErrors(error) {
    const fields = error.fields ?? {};
    const unplaced = form.showErrors(Object.fromEntries(Object.entries(fields).filter(([path]) => path !== 'priority')));
    priority.showError(fields.priority ?? null);
    const count = Object.keys(fields).length;
    const summary = unplaced.length ? unplaced.join('\n') : count ? `${count === 1 ? 'One field is' : `${count} fields are`} wrong. See the message beside each field.` : error.message;
    errorBox.replaceChildren(problem(new Error(summary)));
    cost.replaceChildren(element('p.soft', {}, 'Correct the fields to see the cost.'));
    if (error.code === 'too-expensive') forceOption.hidden = false;
  }

  /** Known names for a field, from the server or the rest of the form. */
  function choices(path, values) {
    const name = path.at(-1);
    const minima = Object.keys(values.minima ?? {}).map((entry) => [entry, entry]);
    if (name === 'dataset') return datasets.items.map((entry) => [entry.name, entry.present === false ? `${entry.name} (downloaded at first use)` : entry.name]);
    if (name === 'checkpoint') return checkpoints.map((entry) => [entry.id, `${entry.name} (${entry.id})`]);
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

/** Bends of the curves, which a plane may go through. */
function bends(values) {
  const curves = values.curves ?? { valley: {} };
  return Object.entries(curves).flatMap(([name, { bends: count = 1 }]) => (
    Number(count) > 1 ? Array.from({ length: Math.min(8, Number(count)) }, (_, index) => `${name}.bend${index + 1}`) : [`${name}.bend`]));
}

function skeleton() {
  return element('div.new', { 'aria-hidden': 'true' }, element('div.left', {}, element('div.panel.placeholder')), element('div.right', {}, element('div.panel.placeholder')));
}
