/** Shares an experiment: the address of this view, read-only links that expire, and the code of an iframe. */

import { element, uniqueId } from '../elements.js';
import { moment } from '../format.js';
import { closed } from './confirm-dialog.js';
import { codeBlock, copy } from './copy-button.js';
import { showToast } from './toasts.js';

const PERIODS = [[1, 'a day'], [7, 'a week'], [30, '30 days'], [365, 'a year']];

/** @param {{id: string, name: string, origin: string}} experiment */
export async function shareDialog(api, { id, name, origin }) {
  const title = uniqueId('share');
  const links = element('div.share-links', { 'aria-live': 'polite' });
  const problem = element('p.wrong', { role: 'alert' });
  const period = element('select', { 'aria-label': 'Valid for' }, PERIODS.map(([days, words]) =>
    element('option', { value: days, selected: days === 30 }, words)));
  const make = element('button.primary', { type: 'button', onclick: () => attempt(async () => {
    const made = await api.post(path(), { days: Number(period.value) });
    await list();
    await copy(addressOf(made));
    showToast('Read-only link copied.');
  }) }, 'Make a read-only link');
  const dialog = element('dialog.share', { 'aria-labelledby': title },
    element('form', { method: 'dialog' },
      element('h2', { id: title }, `Share ${name}`),
      element('div.row', {}, element('button', { type: 'button', autofocus: true, onclick: copyView }, 'Copy the address of this view')),
      element('p.soft', {}, 'It opens what you see now, for people who can use this server.'),
      origin === 'gallery' ? null : [
        element('h3', {}, 'Read-only link'),
        element('p.soft', {}, 'It opens this experiment and its files without an API key, and nothing else, until it expires or you revoke it.'),
        element('div.row', {}, make, element('label.row', {}, 'valid for', period)),
        problem, links],
      element('div.actions', {}, element('button', { value: 'close' }, 'Close'))));
  if (origin !== 'gallery') attempt(list);
  await closed(dialog);

  function path(share = '') {
    return `/api/experiments/${encodeURIComponent(id)}/share${share && `/${share}`}`;
  }

  async function attempt(action) {
    problem.textContent = '';
    try {
      await action();
    } catch (error) {
      problem.textContent = error.message;
    }
  }

  async function copyView() {
    try {
      await copy(location.href);
      showToast('Link copied. It opens the view as you see it now.');
    } catch {
      showToast(`Copy this link: ${location.href}`);
    }
    dialog.close();
  }

  async function list() {
    const { items } = await api.get(path(), { cache: 'no-store' });
    links.replaceChildren(...items.map((share) => element('div.share-link', {},
      block('address of the link', addressOf(share)),
      share.embed.length ? block('code of an iframe', iframeOf(share)) : null,
      element('div.row', {},
        element('span.soft', {}, `until ${moment(share.expires)}`),
        element('button', { type: 'button', onclick: () => attempt(async () => { await api.del(path(share.id)); await list(); }) }, 'Revoke')))));
  }
}

const addressOf = (share) => location.origin + share.path;

const iframeOf = (share) =>
  `<iframe src="${addressOf(share)}" width="100%" height="900" style="border:0" title="Loss landscape"></iframe>`;

function block(label, text) {
  const made = codeBlock(label);
  made.show(text);
  return made.node;
}
