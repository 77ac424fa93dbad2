/** The list of experiments as a table: filters, order, columns, selection and trash; the URL holds them. */

import { element, icon, uniqueId } from '../elements.js';
import { landscapeDrop } from '../components/landscape-drop.js';
import { problem } from '../components/problem.js';
import { showToast, toastErrors } from '../components/toasts.js';
import { counted } from '../format.js';
import { noticeSwitch, tellEnd } from '../end-notice.js';
import { BulkBar } from '../list/bulk-bar.js';
import { bulkActions } from '../list/bulk-actions.js';
import { columnMenu } from '../list/column-menu.js';
import { COLUMNS, ColumnChoice } from '../list/columns.js';
import { ExperimentTable } from '../list/experiment-table.js';
import { LoadedPages } from '../list/loaded-pages.js';
import { poll } from '../polling.js';
import { emptyList } from './empty-list.js';

const STATES = ['queued', 'running', 'done', 'failed', 'cancelled'];
const ACTIVE = ['queued', 'running'];
const NEWEST = '-created';
const EARLIER_ORDERS = { verdict: 'verdict_kind', longest: '-active_seconds' }; // of links from before the table
const PAGE_SIZE = 50;
const MOST_IN_ADDRESS = 50;
const ACTIVE_INTERVAL = 1500;
const IDLE_INTERVAL = 6000;
const TYPING_DELAY = 250;
const TITLE = 'Experiments · Valleyscope';

export default function mount(root, context) {
  const { api, urlState, navigate } = context;
  document.title = TITLE;
  const loaded = new LoadedPages();
  const choice = new ColumnChoice();
  const chosen = new Set((urlState.get().ids ?? '').split(',').filter(Boolean));
  const states = new Map(); // as last seen, to notice the end of a run
  let asked = null; // the question that the loaded pages answer
  let lastTicked = null;
  let typing = 0;
  let loadingMore = null;

  const search = element('input', { type: 'search', placeholder: 'Search name, tag or note', 'aria-label': 'Search name, tag or note', oninput: () => {
    clearTimeout(typing);
    typing = setTimeout(() => urlState.set({ search: search.value.trim() }), TYPING_DELAY);
  } });
  const state = select('State', [['', 'all states'], ...STATES.map((name) => [name, name])], (value) => urlState.push({ state: value }));
  const order = select('Sort by', orders(), (value) => urlState.push({ sort: value }));
  order.node.classList.add('only-phone');
  const tag = element('button.chip', { type: 'button', hidden: true, onclick: () => { urlState.push({ tag: '' }); search.focus(); } });
  const trash = element('a.trash-link');
  const columns = columnMenu(choice);
  const notices = noticeSwitch();
  const drop = landscapeDrop({ api, words: 'Drop landscapes here to open them, or ', onOpened: (items) => {
    if (items.length === 1) return navigate(`/experiments/${items[0].id}`);
    showToast(`${counted(items.length, 'landscape')} opened`);
    return polling.now();
  } });
  const openButton = element('a.button', { href: '/new?way=landscape', title: 'Or drop its files anywhere on this page' }, icon('file'), 'Open a landscape');
  const newButton = element('a.button.primary', { href: '/new' }, icon('plus'), 'New experiment');
  const heading = element('h1', { tabIndex: -1 }, 'Experiments');
  const actions = bulkActions(api, changed);
  const selected = () => loaded.items.filter(({ id }) => chosen.has(id));
  const onSelected = (action) => () => actions[action](selected());
  const bar = new BulkBar({
    compare: () => navigate('/compare', { ids: [...chosen].join(',') }),
    clear: () => { chosen.clear(); showSelection(); heading.focus(); },
    ...Object.fromEntries(['tag', 'cancel', 'delete', 'restore', 'purge'].map((action) => [action, onSelected(action)])),
  });
  const table = new ExperimentTable(
    { api, tick, filterTag: (name) => urlState.push({ tag: name }), act: (action, row) => actOnRow(action, row), described },
    { sort: (value) => urlState.push({ sort: value === NEWEST ? '' : value }), tickAll });
  const more = element('button.more', { type: 'button', hidden: true, onclick: () => loadMore({ focus: true }) }, 'Show more');
  const count = element('p.soft.count', { 'aria-live': 'polite' });
  const about = element('div.about');
  const filters = element('div.filters', {}, search, state.node, order.node, tag, element('span.gap'), trash, columns.node);
  root.append(element('div.page.list', {},
    element('div.head', {}, heading, notices, openButton, newButton),
    filters, drop.node, about, bar.node, table.node, element('div.end', {}, count, more)));
  table.node.append(skeletons());

  const nearEnd = new IntersectionObserver(([{ isIntersecting }]) => { if (isIntersecting && !more.hidden) loadMore(); }, { rootMargin: '600px' });
  nearEnd.observe(more);
  const redraw = () => { if (asked !== null) show(); };
  const resized = () => { if (choice.isDefault) redraw(); };
  choice.addEventListener('change', redraw);
  addEventListener('resize', resized);
  const restoreTitle = () => { document.title = TITLE; };
  for (const kind of ['pointerdown', 'keydown']) document.addEventListener(kind, restoreTitle);

  const polling = poll(load, { whileHidden: () => anyActive() });
  readAddress();
  polling.now();
  return {
    update: () => { readAddress(); if (question() === asked) showSelection(); else polling.now(); },
    unmount: () => {
      polling.stop();
      clearTimeout(typing);
      nearEnd.disconnect();
      drop.close();
      removeEventListener('resize', resized);
      for (const kind of ['pointerdown', 'keydown']) document.removeEventListener(kind, restoreTitle);
      columns.close();
      table.close();
    },
  };

  function readAddress() {
    const query = urlState.get();
    if (document.activeElement !== search) search.value = query.search ?? '';
    state.field.value = query.state ?? '';
    order.field.value = sortOf(query);
    tag.hidden = !query.tag;
    tag.replaceChildren(`tag: ${query.tag ?? ''}`, icon('cross'));
    tag.setAttribute('aria-label', `Show all, not only the tag ${query.tag}`);
    heading.textContent = query.trash ? 'Trash' : 'Experiments';
    trash.textContent = query.trash ? 'Back to the list' : 'Trash';
    trash.href = query.trash ? '/' : '/?trash=true';
  }

  /** The filters and the order, as a query of the API. */
  function question() {
    const query = urlState.get();
    const wanted = new URLSearchParams({ sort: sortOf(query) });
    if (STATES.includes(query.state)) wanted.set('state', query.state);
    for (const name of ['search', 'tag', 'trash']) if (query[name]) wanted.set(name, query[name]);
    return wanted.toString();
  }

  function ask(wanted, more = {}) {
    return api.get(`/api/experiments?${wanted}&${new URLSearchParams({ limit: PAGE_SIZE, ...more })}`);
  }

  async function load() {
    const wanted = question();
    try {
      if (wanted !== asked) {
        const page = await ask(wanted);
        if (question() !== wanted) return 0; // the filters changed meanwhile
        asked = wanted;
        loaded.reset(page);
      } else if (!(await refresh(wanted))) return 0;
      show();
      return anyActive() ? ACTIVE_INTERVAL : IDLE_INTERVAL;
    } catch (error) {
      asked = null;
      about.replaceChildren(problem(error, { again: () => polling.now() }));
      table.node.hidden = true;
      return IDLE_INTERVAL;
    }
  }

  /** Asks again for what is on screen: the first page, which may have new experiments, and rows of later pages. */
  async function refresh(wanted) {
    const onScreen = table.onScreen;
    const first = new Set(loaded.pages[0].map(({ id }) => id));
    const others = onScreen.filter((id) => !first.has(id));
    const [page, rest] = await Promise.all([
      loaded.pages.length === 1 || others.length < onScreen.length ? ask(wanted) : null,
      others.length ? ask(wanted, { ids: others.join(','), limit: 200 }) : null,
    ]);
    if (question() !== wanted || asked !== wanted) return false;
    if (page) loaded.refreshFirst(page);
    if (rest) loaded.refresh(others, rest.items);
    return true;
  }

  /** @param {{focus?: boolean}} [options] focus: on the first new row, for those who pressed the button */
  function loadMore({ focus = false } = {}) {
    loadingMore ??= toastErrors(async () => {
      const wanted = asked;
      const before = loaded.pages.length;
      const page = await ask(wanted, { cursor: loaded.next });
      if (asked !== wanted || question() !== wanted) return;
      loaded.append(page);
      show();
      if (focus) table.row(loaded.pages[before]?.[0]?.id)?.focus();
    }).finally(() => {
      loadingMore = null;
      nearEnd.unobserve(more); // so that it looks again: the end may still be near
      nearEnd.observe(more);
    });
    return loadingMore;
  }

  function show() {
    const query = urlState.get();
    const { items, pages, next } = loaded;
    noticeEnds(items);
    const present = new Set(items.map(({ id }) => id));
    // Entries of the gallery are chosen elsewhere, to be compared.
    if (next === null) for (const id of chosen) if (!present.has(id) && !id.startsWith('gallery-')) chosen.delete(id);
    table.node.querySelector('.skeletons')?.remove();
    table.show({ pages, columns: choice.shown, chosen, trash: Boolean(query.trash), sort: sortOf(query) });
    more.hidden = next === null;
    const nothing = items.length === 0;
    const filtered = Boolean(query.search || query.state || query.tag || query.trash);
    count.textContent = nothing || (next === null && items.length < PAGE_SIZE) ? '' : `${items.length.toLocaleString('en')} shown${next === null ? '' : ', more below'}`;
    filters.hidden = nothing && !filtered;
    newButton.hidden = nothing && !filtered;
    openButton.hidden = newButton.hidden;
    table.node.hidden = nothing;
    if (notices) notices.hidden = !anyActive();
    if (!nothing) about.replaceChildren();
    else if (filtered) about.replaceChildren(element('p.soft', {}, query.trash && !query.search && !query.tag && !query.state ? 'The trash is empty. ' : 'No experiments match. ', element('a', { href: '/' }, 'Show all')));
    else if (!about.querySelector('.welcome')) about.replaceChildren(emptyList(api, runDemo));
    showSelection();
  }

  /** Tells of runs that were seen active and have ended since. */
  function noticeEnds(items) {
    for (const item of items) {
      if (ACTIVE.includes(states.get(item.id)) && !ACTIVE.includes(item.state)) tellEnd(item, navigate);
      states.set(item.id, item.state);
    }
  }

  function anyActive() {
    return loaded.items.some((item) => ACTIVE.includes(item.state));
  }

  function tick(id, on, range) {
    const ids = loaded.items.map((item) => item.id);
    const [from, to] = [ids.indexOf(lastTicked), ids.indexOf(id)].sort((a, b) => a - b);
    const touched = range && from >= 0 ? ids.slice(from, to + 1) : [id];
    for (const one of touched) chosen[on ? 'add' : 'delete'](one);
    lastTicked = id;
    showSelection();
  }

  function tickAll(on) {
    for (const { id } of loaded.items) chosen[on ? 'add' : 'delete'](id);
    showSelection();
  }

  function showSelection() {
    urlState.set({ ids: [...chosen].slice(0, MOST_IN_ADDRESS).join(',') });
    table.showTicks(chosen);
    bar.show(chosen.size, Boolean(urlState.get().trash));
  }

  /** After an action: the list as it is now, and the focus near what it was about. */
  async function changed(ids) {
    const before = loaded.items.map(({ id }) => id);
    const place = Math.min(...ids.map((id) => before.indexOf(id)).filter((index) => index >= 0), before.length);
    for (const id of ids) chosen.delete(id);
    const wanted = question();
    const page = loaded.pages.length > 1 ? await ask(wanted, { ids: ids.slice(0, 200).join(','), limit: 200 }) : null;
    if (page) loaded.refresh(ids, page.items);
    await polling.now();
    const after = new Set(loaded.items.map(({ id }) => id));
    const near = [...ids, ...before.slice(place), ...before.slice(0, place).reverse()].find((id) => after.has(id) && table.row(id));
    (table.row(near) ?? heading).focus();
  }

  function actOnRow(action, row) {
    if (action !== 'cancel') return actions[action]([row.experiment]);
    return toastErrors(async () => { // its own button is confirmation enough: a retry goes on from there
      await api.post(`/api/experiments/${row.id}/cancel`);
      await polling.now();
    });
  }

  function described(experiment) {
    loaded.refresh([], [experiment]);
    show();
    polling.now();
  }

  function runDemo() {
    return toastErrors(async () => {
      const { demo } = await api.get('/api/recipes');
      const made = await api.post('/api/experiments', { recipe: demo });
      navigate(`/experiments/${made.id}`);
    });
  }
}

/** The order that an address asks for, as the API names it. */
function sortOf({ sort = '' }) {
  const named = EARLIER_ORDERS[sort] ?? sort;
  return named === 'name' || named === '-name' || COLUMNS.some((column) => column.sort === named.replace('-', '')) ? named : NEWEST;
}

/** For a phone, where the table has no head to click. */
function orders() {
  
  const text = [{ title: 'name', sort: 'name' }, ...COLUMNS.filter(({ number }) => !number)];
  return [[NEWEST, 'newest first'], ...COLUMNS.filter(({ number, key }) => number && key !== 'submitted').flatMap(({ title, sort }) => [[`-${sort}`, `highest ${title}`], [sort, `lowest ${title}`]]),
    ...text.map(({ title, sort }) => [sort, `by ${title}`]), ['created', 'oldest first']];
}

function select(label, options, onchange) {
  const id = uniqueId('filter');
  const field = element('select', { id, onchange: () => onchange(field.value) }, options.map(([value, words]) => element('option', { value }, words)));
  return { field, node: element('div.filter', {}, element('label.visually-hidden', { for: id }, label), field) };
}

function skeletons() {
  return element('div.skeletons', { 'aria-hidden': 'true' }, Array.from({ length: 6 }, () => element('div', {}, element('span.thumbnail'), element('span.line'))));
}
