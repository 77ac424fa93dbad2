/** A read-only link: the view of one experiment, without an API key and without anything that changes it. */

import { shareAccess } from '../api.js';
import { problem } from '../components/problem.js';
import { element } from '../elements.js';
import { moment } from '../format.js';
import mountExperiment from './experiment.js';

export default async function mount(root, context) {
  document.querySelector('header.frame nav')?.remove();
  document.querySelector('header.frame .brand')?.removeAttribute('href'); // other pages are not for this visitor
  shareAccess.token = context.params.token;
  try {
    const { experiment, expires } = await context.api.get('/api/shared');
    const view = await mountExperiment(root, { ...context, params: { id: experiment }, readOnly: true });
    root.append(element('p.page.soft.shared-note', {}, `Read-only link, valid until ${moment(expires)}.`));
    return { ...view, unmount: () => { shareAccess.token = null; view.unmount?.(); } };
  } catch (error) {
    root.replaceChildren(element('div.page', {}, element('h1', { tabIndex: -1 }, 'This link cannot be opened'), problem(error)));
    return { unmount: () => { shareAccess.token = null; } };
  }
}
