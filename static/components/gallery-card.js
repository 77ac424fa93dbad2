import { element } from '../elements.js';
import { experimentBadge } from './badge.js';
import { Thumbnail } from './thumbnail.js';

/**
 * A finished landscape of the gallery: picture, title, verdict, and what it shows.
 * @param {object} item of /api/gallery
 * @param {HTMLElement | null} [tick] a control to choose it
 */
export function galleryCard(api, item, tick = null) {
  const thumbnail = new Thumbnail(api);
  thumbnail.show(item);
  const address = `/experiments/${item.id}`;
  return element('li.gallery-card', { 'data-id': item.id, 'data-state': 'done' },
    element('a.picture', { href: address, tabIndex: -1, 'aria-hidden': 'true' }, thumbnail.canvas),
    element('div.gallery-text', {},
      element('div.row', {}, experimentBadge(item), tick),
      element('h3', {}, element('a', { href: address }, item.name)),
      element('p.soft', {}, item.shows)));
}

/** All cards; none if they cannot be read, since nothing depends on them. */
export async function galleryCards(api) {
  const { items } = await api.get('/api/gallery').catch(() => ({ items: [] }));
  return items.map((item) => galleryCard(api, item));
}
