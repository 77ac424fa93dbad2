import { element } from '../elements.js';
import { experimentBadge } from './badge.js';
import { Thumbnail } from './thumbnail.js';

/**
 * A finished landscape of the gallery: picture, title, verdict, and what it shows.
 * @param {object} item of /api/gallery
 * @param {{tick?: HTMLElement, heading?: string}} [options] a control to choose it; the element of its title
 */
export function galleryCard(api, item, { tick = null, heading = 'h3' } = {}) {
  const thumbnail = new Thumbnail(api);
  thumbnail.show(item);
  const address = `/experiments/${item.id}`;
  return element('li.gallery-card', { 'data-id': item.id, 'data-state': 'done' },
    element('a.picture', { href: address, tabIndex: -1, 'aria-hidden': 'true' }, thumbnail.canvas),
    element('div.gallery-text', {},
      experimentBadge(item),
      element(heading, {}, element('a', { href: address }, item.name)),
      element('p.soft', {}, item.shows),
      tick));
}

/** All cards; none if they cannot be read, since nothing depends on them. */
export async function galleryCards(api) {
  const { items } = await api.get('/api/gallery').catch(() => ({ items: [] }));
  return items.map((item) => galleryCard(api, item));
}
