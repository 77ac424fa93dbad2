/** A new experiment: a recipe or a blank form, what it will cost, and the same by curl and Python. */

import { element, icon, uniqueId } from '../elements.js';
import { codeBlock } from '../components/copy-button.js';
import { problem } from '../components/problem.js';
import { tabs } from '../components/tabs.js';
import { SpecForm } from '../form/spec-form.js';
import { Schema } from '../form/schema.js';
import { cell } from '../form/field.js';
import { costOf } from './cost-estimate.js';
import { curl, python } from '../components/code-snippets.js';
import { uploads } from './checkpoint-uploads.js';

const TYPING = 500;
const BLANK = { minima: { sgd: { optimizer: 'sgd' } } };
const copy = (value) => JSON.parse(JSON.stringify(value));

export default async function mount(root, { api, store, navigate, announce }) {
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
  let asking = null;
  let sending = false;

  const form = new SpecForm(schema, { models: models.items, choices, onchange: changed });
  const chooser = recipeChooser();
  const wrong = element('div');
  const cost = element('div', { 'aria-live': 'polite' });
  const asCurl = codeBlock('The same by curl');
  const asPython = codeBlock('The same by Python');
  const asJson = codeBlock('The spec as JSON');
  const apart = { values: {} };
  const priority = cell(schema.describe(schema.submission().properties.priority), {
    path: ['priority'], usual: 100, onchange: (value) => { apart.values.priority = value; changed(); },
  });
  const force = element('input', { type: 'checkbox', id: uniqueId('force'), onchange: () => { apart.values.force = force.checked || undefined; changed(); } });
  const forcing = element('label.row', { hidden: true }, force, 'Run it although it exceeds the limit of this server');
  const button = element('button.primary', { type: 'submit' }, icon('play'), 'Run it');
  const upload = uploads({
    api,
    described: () => ({ model: { name: 'cnn', ...form.values.model }, dataset: form.values.dataset ?? 'digits' }),
    use: ({ id, name }) => announce(`${form.add('minima', name, { checkpoint: id })} is a minimum now`),
    listed: (items) => { checkpoints = items; },
    removed: () => estimate(),
  });

  page.lastChild.replaceWith(element('form.new', { novalidate: true, onsubmit: (event) => { event.preventDefault(); submit(); } },
    element('div.left', {}, chooser.node, form.node, upload.node,
      element('section.panel.ways', {}, element('h2', {}, 'The same without this page'), tabs({
        label: 'Ways to submit',
        panels: [
          { name: 'curl', title: 'curl', content: asCurl.node },
          { name: 'python', title: 'Python', content: asPython.node },
          { name: 'spec', title: 'Spec', content: asJson.node },
        ],
      }).node)),
    element('div.right', {},
      element('section.panel', {}, element('h2', {}, 'What it will cost'), cost, forcing, wrong, priority.node, button))));
  await start();
  return {
    update: (query) => { if (query.spec !== address() || query.recipe !== chooser.shown) start(); },
    unmount: () => { clearTimeout(typing); asking?.abort(); upload.close(); },
  };

  /** Fills the form with what the address says: a draft, a recipe, another experiment's spec, or the demo. */
  async function start() {
    const { spec, recipe, from } = store.get();
    let values = null;
    try {
      values = spec ? JSON.parse(spec) : null;
    } catch { /* a mangled link: the recipe stays */ }
    const asked = location.search;
    if (!values && from) values = (await api.get(`/api/experiments/${from}`)).spec;
    if (location.search !== asked) return; // something else is wanted meanwhile
    const known = recipes.items.find((entry) => entry.name === (recipe ?? recipes.demo));
    const draft = values && (from && !spec ? 'The spec of another experiment, to be changed.' : 'As you left it.');
    chooser.show(recipe === 'blank' || (!recipe && values) ? 'blank' : known?.name ?? recipes.demo, draft);
    chooser.shown = recipe;
    form.show(copy(values ?? (recipe === 'blank' ? BLANK : (known ?? recipes.items.find((entry) => entry.name === recipes.demo)).spec)));
    settle();
    estimate(); // not waited for: until this view is mounted, nobody tells it that the address has changed
  }

  function changed() {
    settle();
    clearTimeout(typing);
    typing = setTimeout(() => {
      store.set({ spec: address(), from: null });
      estimate();
    }, TYPING);
  }

  /** The draft as it stands in the address; nothing while it is a recipe as it is. */
  function address() {
    const text = JSON.stringify(form.values);
    const recipe = recipes.items.find((entry) => entry.name === chooser.value);
    return recipe && JSON.stringify(recipe.spec) === text ? undefined : text;
  }

  function settle() {
    const recipe = recipes.items.find((entry) => entry.name === chooser.value);
    const same = recipe && JSON.stringify(recipe.spec) === JSON.stringify(form.values);
    submission = { ...(same ? { recipe: recipe.name } : form.values), ...apart.values };
    key = crypto.randomUUID?.() ?? String(Math.random());
    asCurl.show(curl(submission));
    asPython.show(python(submission));
    asJson.show(JSON.stringify({ ...form.values, ...apart.values }, null, 2));
  }

  async function estimate() {
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    if (!cost.firstChild) cost.replaceChildren(element('p.soft', {}, 'Working it out …'));
    cost.classList.add('stale');
    try {
      const found = await api.post('/api/estimate', submission, { signal });
      form.tell({});
      priority.tell(null);
      wrong.replaceChildren();
      cost.replaceChildren(costOf(found, Object.keys(form.values.minima ?? {})));
      forcing.hidden = found.allowed;
      if (!found.allowed) wrong.replaceChildren(problem(new Error(`This exceeds the limit of ${found.limit_gpu_hours} GPU hours of this server.`)));
    } catch (error) {
      if (!signal.aborted) refuse(error);
    } finally {
      if (!signal.aborted) cost.classList.remove('stale');
    }
  }

  async function submit() {
    if (sending) return;
    sending = true;
    button.disabled = true;
    clearTimeout(typing);
    asking?.abort();
    try {
      const made = await api.post('/api/experiments', submission, { headers: { 'Idempotency-Key': key } });
      navigate(`/experiments/${made.id}`);
    } catch (error) {
      refuse(error);
      form.focusFirstError();
    } finally {
      sending = false;
      button.disabled = false;
    }
  }

  /** Errors go to their fields; what has none stands above the button. */
  function refuse(error) {
    const fields = error.fields ?? {};
    const homeless = form.tell(Object.fromEntries(Object.entries(fields).filter(([path]) => path !== 'priority')));
    priority.tell(fields.priority ?? null);
    const count = Object.keys(fields).length;
    const summary = homeless.length ? homeless.join('\n') : count ? `${count === 1 ? 'One field is' : `${count} fields are`} wrong: see what is said beside.` : error.message;
    wrong.replaceChildren(problem(new Error(summary)));
    cost.replaceChildren(element('p.soft', {}, 'The cost can be told when the fields are right.'));
    if (error.code === 'too-expensive') forcing.hidden = false;
  }

  /** Names that a field may take, where the server or the rest of the form knows them. */
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
      store.set({ recipe: field.value, spec: null, from: null }, { replace: false });
    } }, element('option', { value: 'blank' }, 'blank'), recipes.items.map(({ name }) => element('option', { value: name }, name === recipes.demo ? `${name} (the demo)` : name)));
    return {
      node: element('section.panel.chooser', {}, element('h2', {}, element('label', { for: id }, 'Start from')), field, about),
      get value() { return field.value; },
      /** @param {string | null} draft what the form holds where it is not the recipe as it is */
      show(name, draft) {
        field.value = name;
        const described = recipes.items.find((entry) => entry.name === name)?.description;
        about.textContent = draft ?? described ?? 'An empty spec: everything is at its default.';
      },
    };
  }
}

/** Free points of the curves, which a plane may go through. */
function bends(values) {
  const curves = values.curves ?? { valley: {} };
  return Object.entries(curves).flatMap(([name, { bends: count = 1 }]) => (
    Number(count) > 1 ? Array.from({ length: Math.min(8, Number(count)) }, (_, index) => `${name}.bend${index + 1}`) : [`${name}.bend`]));
}

function skeleton() {
  return element('div.new', { 'aria-hidden': 'true' }, element('div.left', {}, element('div.panel.ghost')), element('div.right', {}, element('div.panel.ghost')));
}
