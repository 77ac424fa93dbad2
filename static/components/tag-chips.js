import { element } from '../elements.js';

/**
 * Tags as links to the list of experiments that have them.
 * @param {string[]} tags
 * @param {(tag: string) => void} [filter] what a click does instead of following the link
 */
export function tagChips(tags, filter) {
  return tags.map((tag) => element('a.chip', {
    href: `/?${new URLSearchParams({ tag })}`,
    title: `Show those with the tag “${tag}”`,
    onclick: (event) => {
      if (!filter || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      filter(tag);
    },
  }, tag));
}
