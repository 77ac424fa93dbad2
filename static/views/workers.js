/** Workers and queue: who is alive, on which device, doing what, since when; and what waits, in order. */

import { element } from '../elements.js';
import { badge } from '../components/badge.js';
import { problem } from '../components/problem.js';
import { ago, bytes, counted, duration, secondsBetween } from '../format.js';
import { poll } from '../polling.js';

const EVERY = 2000;
const SHOWN = 200;

export default function mount(root, { api }) {
  document.title = 'Workers and queue · Valleyscope';
  const workers = section('Workers', ['worker', 'state', 'device', 'memory', 'task', 'experiment', 'for', 'last seen']);
  const queue = section('Queue', ['', 'task', 'experiment', 'priority', 'waits for']);
  const wrong = element('div.about');
  root.append(element('div.page', {}, element('h1', { tabIndex: -1 }, 'Workers and queue'), wrong, workers.node, queue.node));
  const polling = poll(look);
  polling.now();
  return { update: () => {}, unmount: () => polling.stop() };

  async function look() {
    try {
      const [alive, waiting, experiments] = await Promise.all([
        api.get('/api/workers'), api.get('/api/queue'), api.get('/api/experiments?limit=200'),
      ]);
      const known = Object.fromEntries(experiments.items.map((experiment) => [experiment.id, experiment]));
      wrong.replaceChildren();
      workers.show(alive.items.map((worker) => [
        element('span', {}, element('strong', {}, worker.host), ` · process ${worker.pid}`),
        badge(worker.state), device(worker), memory(worker), worker.task ?? '–', link(worker.experiment, known),
        duration(secondsBetween(worker.since)), ago(worker.seen),
      ]), counted(alive.items.length, 'worker'),
      'No worker is alive: what is submitted waits. Start one by “valley worker”, or the server with --workers 1 or more.');
      queue.show(waiting.items.slice(0, SHOWN).map((task, index) => [
        String(index + 1), task.task, link(task.experiment, known), String(known[task.experiment]?.priority ?? '–'), duration(secondsBetween(task.since)),
      ]), counted(waiting.items.length, 'task'), 'Nothing waits.');
    } catch (error) {
      wrong.replaceChildren(problem(error));
    }
    return EVERY;
  }
}

function device({ device: name, device_name: called }) {
  return called ? element('span', {}, name, element('span.soft', {}, ` · ${called}`)) : name;
}

function memory({ memory_used: used, memory_total: total }) {
  if (used === null || used === undefined) return '–';
  return total ? `${bytes(used)} of ${bytes(total)}` : bytes(used);
}

function link(id, known) {
  return id ? element('a', { href: `/experiments/${id}` }, known[id]?.name ?? id) : '–';
}

/** A table that changes in place, with words where it is empty. */
function section(title, columns) {
  const count = element('span.soft');
  const body = element('tbody');
  const table = element('div.scroll', { hidden: true, tabIndex: 0, role: 'region', 'aria-label': title },
    element('table', {}, element('caption.unseen', {}, title),
      element('thead', {}, element('tr', {}, columns.map((name) => (name ? element('th', { scope: 'col' }, name) : element('td', {}))))), body));
  const words = element('p.soft', {}, 'Looking …');
  return {
    node: element('section.panel', {}, element('h2.row', {}, title, count), table, words),
    show(rows, counted_, empty) {
      count.textContent = rows.length ? counted_ : '';
      table.hidden = !rows.length;
      words.hidden = rows.length > 0;
      words.textContent = empty;
      rows.forEach((cells, index) => {
        const row = body.children[index] ?? body.appendChild(element('tr'));
        cells.forEach((content, place) => fill(row.children[place] ?? row.appendChild(element('td')), content));
      });
      while (body.children.length > rows.length) body.lastChild.remove();
    },
  };
}

/** Changes a cell only where it says something else: a link under the cursor or focus stays. */
function fill(cell, content) {
  const before = cell.innerHTML;
  const after = typeof content === 'string' ? null : content.outerHTML;
  if (after === null ? cell.textContent !== content || cell.firstElementChild : before !== after) cell.replaceChildren(content);
}
