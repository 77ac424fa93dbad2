/** Entry point: shows the view for the current URL, the theme switch and the connection notice. */

import { api } from './api.js';
import { element } from './elements.js';
import { UrlState } from './url-state.js';
import { theme } from './theme.js';
import { themeSwitch } from './components/theme-switch.js';
import { errorPage } from './components/problem.js';

const ROUTES = [
  { name: 'experiments', path: /^\/$/, load: () => import('./views/experiments.js') },
  { name: 'new', path: /^\/new$/, load: () => import('./views/new.js') },
  { name: 'experiment', path: /^\/experiments\/(?<id>[^/]+)$/, load: () => import('./views/experiment.js') },
  { name: 'shared', path: /^\/shared\/(?<token>[^/]+)$/, load: () => import('./views/shared.js') },
  { name: 'gallery', path: /^\/gallery$/, load: () => import('./views/gallery.js') },
  { name: 'compare', path: /^\/compare$/, load: () => import('./views/compare.js') },
  { name: 'workers', path: /^\/workers$/, load: () => import('./views/workers.js') },
  { name: 'help', path: /^\/help$/, load: () => import('./views/help.js') },
];
const NOTICE_DELAY = 600;

const root = document.getElementById('view');
const announcer = document.getElementById('announcer');
const urlState = new UrlState(() => current?.view?.update?.(urlState.get()));

/** @type {{path: string, view: {update?: Function, unmount?: Function} | null} | null} */
let current = null;

/** Announces a text to screen readers. */
function announce(text) {
  announcer.textContent = '';
  requestAnimationFrame(() => { announcer.textContent = text; });
}

/**
 * Shows the view of a path.
 * @param {string} path may have a query
 * @param {Record<string, unknown>} [state] fields to add to the query
 */
function navigate(path, state = {}) {
  const address = new URL(path, location.href);
  for (const [name, value] of Object.entries(state)) {
    if (value !== null && value !== undefined) address.searchParams.set(name, String(value));
  }
  history.pushState(null, '', address.href.replaceAll('%2C', ','));
  return show({ moved: true });
}

async function show({ moved = false } = {}) {
  const path = location.pathname.replace(/(.)\/$/, '$1');
  if (current?.path === path) {
    current.view?.update?.(urlState.get());
    return;
  }
  current?.view?.unmount?.();
  const mine = { path, view: null };
  current = mine;
  const route = ROUTES.find((entry) => entry.path.test(path));
  highlightLink(route?.name);
  if (!route) {
    root.replaceChildren(notFound(path));
  } else {
    try {
      const { default: mount } = await route.load();
      if (current !== mine) return;
      root.replaceChildren();
      root.dataset.view = route.name;
      const asked = location.search;
      mine.view = await mount(root, { api, urlState, params: path.match(route.path).groups ?? {}, navigate, theme, announce });
      if (current !== mine) mine.view?.unmount?.();
      else if (location.search !== asked) mine.view?.update?.(urlState.get()); // the URL changed while the view was loading
    } catch (error) {
      if (current !== mine) return;
      root.replaceChildren(element('div.page', {}, errorPage('This view could not be loaded', error)));
    }
  }
  if (moved && current === mine) {
    scrollTo(0, 0);
    (root.querySelector('h1') ?? root).focus?.({ preventScroll: true });
    announce(document.title);
  }
}

function highlightLink(name) {
  for (const link of document.querySelectorAll('nav a[data-view]')) {
    if (link.dataset.view === name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
}

function notFound(path) {
  document.title = 'Not found · Valleyscope';
  return element('div.page', {},
    element('h1', { tabIndex: -1 }, 'Page not found'),
    element('p', {}, `There is no page at ${path}. `, element('a', { href: '/' }, 'All experiments')));
}

/** Follows a link to another view without reloading the page. */
function onClick(event) {
  const link = event.target.closest?.('a[href]');
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !plain || event.defaultPrevented || link.target || link.hasAttribute('download')) return;
  const address = new URL(link.href);
  if (address.origin !== location.origin || address.pathname.startsWith('/api/')) return;
  if (address.hash && address.pathname === location.pathname) return;
  if (!ROUTES.some((entry) => entry.path.test(address.pathname))) return;
  event.preventDefault();
  navigate(address.href);
}

function showConnectionState() {
  const notice = document.getElementById('notice');
  let timer = 0;
  api.connection.addEventListener('change', () => {
    clearTimeout(timer);
    if (api.connection.online) {
      notice.hidden = true;
      notice.textContent = '';
    } else {
      timer = setTimeout(() => {
        notice.textContent = 'The server does not answer. The page reconnects by itself; what you see may be out of date.';
        notice.hidden = false;
      }, NOTICE_DELAY);
    }
  });
}

document.addEventListener('click', onClick);
addEventListener('popstate', () => show());
document.getElementById('tools').append(themeSwitch(theme));
showConnectionState();
show();
