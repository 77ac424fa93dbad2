/** The ways to something new, each with an address: train networks, compare checkpoints, or open a landscape. */

import { element } from '../elements.js';

const WAYS = {
  train: { title: 'Train and compare', load: () => import('./new-experiment.js') },
  checkpoints: { title: 'Compare my checkpoints', load: () => import('./compare-checkpoints.js') },
  landscape: { title: 'Open a landscape', load: () => import('./landscape-files.js') },
};

const wayOf = ({ way }) => (way in WAYS ? way : 'train');

export default async function mount(root, context) {
  document.title = 'New experiment · Valleyscope';
  const title = element('h1', { tabIndex: -1 }, 'New experiment');
  const links = Object.entries(WAYS).map(([name, { title: words }]) => element('a.tab', { href: name === 'train' ? '/new' : `/new?way=${name}`, 'data-way': name }, words));
  const body = element('div.way', {}, element('div.panel.placeholder', { 'aria-hidden': 'true' }));
  root.append(element('div.page', {}, element('div.head', {}, title), element('nav.tabs.ways-nav', { 'aria-label': 'Ways to begin' }, links), body));
  let shown = null;
  await open(wayOf(context.urlState.get()));
  return {
    update: (query) => {
      if (wayOf(query) === shown.way) return shown.view?.update?.(query);
      return open(wayOf(query));
    },
    unmount: () => shown.view?.unmount?.(),
  };

  async function open(way) {
    shown?.view?.unmount?.();
    const mine = { way, view: null };
    shown = mine;
    for (const link of links) {
      if (link.dataset.way === way) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    const { default: mountWay } = await WAYS[way].load();
    if (shown !== mine) return;
    title.textContent = way === 'train' ? 'New experiment' : WAYS[way].title;
    document.title = `${title.textContent} · Valleyscope`;
    const place = element('div'); // of its own: a way that is left while it loads must not appear in the next one
    body.replaceChildren(place);
    const view = await mountWay(place, { ...context, title });
    if (shown === mine) mine.view = view;
    else view?.unmount?.();
  }
}
