/** The list of experiments, with filters, search, order and actions; the URL holds them all. */

import { element, icon, uniqueId } from '../elements.js';
import { problem } from '../components/problem.js';
import { toastErrors } from '../components/toasts.js';
import { poll } from '../polling.js';
import { ExperimentRow } from './experiment-row.js';
import { emptyList } from './empty-list.js';

const STATES = ['queued', 'running', 'done', 'failed', 'cancelled'];
const ORDERS = {
  newest: ['newest first', () => 0],
  name: ['by name', (a, b) => a.name.localeCompare(b.name)],
  state: ['by state', (a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state)],
  verdict: ['by verdict', (a, b) => (a.verdict_kind ?? '~').localeCompare(b.verdict_kind ?? '~')],
  longest: ['longest run first', (a, b) => elapsed(b) - elapsed(a)],
};
const PAGE_SIZE = 30;
const ACTIVE_INTERVAL = 1500;
const IDLE_INTERVAL = 6000;
const TYPING_DELAY = 250;

const elapsed = ({ active_seconds: active }) => active ?? 0;

export default function mount(root, context) {
  const { api, urlState, navigate } = context;
  document.title = 'Experiments · Valleyscope';
  const rows = new Map();
  const chosen = new Set((urlState.get().ids ?? '').split(',').filter(Boolean));
  let limit = PAGE_SIZE;
  let typing = 0;

  const search = element('input', { type: 'search', placeholder: 'Search by name', 'aria-label': 'Search by name', oninput: () => {
    clearTimeout(typing);
    typing = setTimeout(() => urlState.set({ search: search.value.trim() }), TYPING_DELAY);
  } });
  const state = select('State', [['', 'all states'], ...STATES.map((name) => [name, name])], (value) => urlState.push({ state: value }));
  const order = select('Order', Object.entries(ORDERS).map(([name, [words]]) => [name === 'newest' ? '' : name, words]), (value) => urlState.push({ sort: value }));
  const compare = element('button', { type: 'button', disabled: true, onclick: () => navigate('/compare', { ids: [...chosen].join(',') }) }, 'Compare');
  const newButton = element('a.button.primary', { href: '/new' }, icon('plus'), 'New experiment');
  const list = element('ul.experiments', { 'aria-label': 'Experiments' });
  const more = element('button', { type: 'button', hidden: true, onclick: () => { limit = Math.min(200, limit + PAGE_SIZE); polling.now(); } }, 'Show more');
  const about = element('div.about');
  const filters = element('div.filters', {}, search, state.node, order.node);
  root.append(element('div.page', {},
    element('div.head', {}, element('h1', { tabIndex: -1 }, 'Experiments'), compare, newButton),
    filters, about, list, more));
  list.append(...skeletons());

  const polling = poll(load);
  readAddress();
  polling.now();
  return {
    update: () => { readAddress(); polling.now(); },
    unmount: () => {
      polling.stop();
      clearTimeout(typing);
      for (const row of rows.values()) row.close();
    },
  };

  function readAddress() {
    const query = urlState.get();
    if (document.activeElement !== search) search.value = query.search ?? '';
    state.field.value = query.state ?? '';
    order.field.value = query.sort ?? '';
  }

  function question(query) {
    const asked = new URLSearchParams({ limit: String(limit) });
    if (STATES.includes(query.state)) asked.set('state', query.state);
    if (query.search) asked.set('search', query.search);
    return asked.toString();
  }

  async function load() {
    const asked = question(urlState.get());
    try {
      const page = await api.get(`/api/experiments?${asked}`);
      const query = urlState.get();
      if (question(query) !== asked) return 0; // the filters changed meanwhile
      show(page, query);
      return page.items.some((item) => item.state === 'running' || item.state === 'queued') ? ACTIVE_INTERVAL : IDLE_INTERVAL;
    } catch (error) {
      list.replaceChildren();
      about.replaceChildren(problem(error, { again: () => polling.now() }));
      return IDLE_INTERVAL;
    }
  }

  function show(page, query) {
    const filtered = Boolean(query.search || query.state);
    const sorted = [...page.items].sort(ORDERS[query.sort]?.[1] ?? ORDERS.newest[1]);
    for (const [id, row] of rows) {
      if (!sorted.some((item) => item.id === id)) { row.close(); rows.delete(id); chosen.delete(id); }
    }
    for (const item of sorted) {
      if (!rows.has(item.id)) rows.set(item.id, new ExperimentRow(item.id, { api, navigate, choose, changed: () => polling.now() }));
      rows.get(item.id).show(item, chosen.has(item.id));
    }
    place(list, sorted.map((item) => rows.get(item.id).node));
    more.hidden = page.next === null || limit >= 200;
    const nothing = sorted.length === 0;
    filters.hidden = nothing && !filtered;
    compare.hidden = nothing && !filtered;
    newButton.hidden = nothing && !filtered;
    list.hidden = nothing;
    if (!nothing) about.replaceChildren();
    else if (filtered) about.replaceChildren(element('p.soft', {}, 'No experiments match. ', element('a', { href: '/' }, 'Show all')));
    else if (!about.querySelector('.welcome')) about.replaceChildren(emptyList(api, runDemo));
    showSelection();
  }

  function choose(id, on) {
    if (on) chosen.add(id);
    else chosen.delete(id);
    urlState.set({ ids: [...chosen].join(',') });
    showSelection();
  }

  function showSelection() {
    compare.disabled = chosen.size < 2;
    compare.textContent = chosen.size ? `Compare ${chosen.size}` : 'Compare';
    compare.title = chosen.size < 2 ? 'Select two or more experiments' : '';
  }

  function runDemo() {
    return toastErrors(async () => {
      const { demo } = await api.get('/api/recipes');
      const made = await api.post('/api/experiments', { recipe: demo });
      navigate(`/experiments/${made.id}`);
    });
  }
}

/** Reorders nodes without moving those already in place, so focus and pictures stay. */
function place(list, nodes) {
  nodes.forEach((node, index) => {
    if (list.children[index] !== node) list.insertBefore(node, list.children[index] ?? null);
  });
  while (list.children.length > nodes.length) list.lastChild.remove();
}

function select(label, options, onchange) {
  const id = uniqueId('filter');
  const field = element('select', { id, onchange: () => onchange(field.value) }, options.map(([value, words]) => element('option', { value }, words)));
  return { field, node: element('div.filter', {}, element('label.visually-hidden', { for: id }, label), field) };
}

function skeletons() {
  return Array.from({ length: 3 }, () => element('li.experiment.skeleton', { 'aria-hidden': 'true' },
    element('div.thumbnail'), element('div.lines', {}, element('div'), element('div'), element('div'))));
}
