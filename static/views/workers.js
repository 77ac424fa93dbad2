/** Workers with their devices and tasks, and the queue in order. */

import { element } from '../elements.js';
import { badge } from '../components/badge.js';
import { problem } from '../components/problem.js';
import { ago, bytes, counted, duration, secondsBetween } from '../format.js';
import { poll } from '../polling.js';

const INTERVAL = 2000;
const MOST_SHOWN = 200;

export default function mount(root, { api }) {
  document.title = 'Workers and queue · Valleyscope';
  const workers = section('Workers', ['worker', 'state', 'device', 'memory', 'task', 'experiment', 'for', 'last seen']);
  const queue = section('Queue', ['', 'task', 'experiment', 'priority', 'waiting for']);
  const wrong = element('div.about');
  root.append(element('div.page', {}, element('h1', { tabIndex: -1 }, 'Workers and queue'), wrong, workers.node, queue.node));
  const polling = poll(load);
  polling.now();
  return { unmount: () => polling.stop() };

  async function load() {
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
      'No workers are running, so experiments wait. Start one with “valley worker”.');
      queue.show(waiting.items.slice(0, MOST_SHOWN).map((task, index) => [
        String(index + 1), task.task, link(task.experiment, known), String(known[task.experiment]?.priority ?? '–'), duration(secondsBetween(task.since)),
      ]), counted(waiting.items.length, 'task'), 'The queue is empty.');
    } catch (error) {
      wrong.replaceChildren(problem(error));
    }
    return INTERVAL;
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

/** A table that is updated in place, with a text while it is empty. */
function section(title, columns) {
  const count = element('span.soft');
  const body = element('tbody');
  const table = element('div.scroll', { hidden: true, tabIndex: 0, role: 'region', 'aria-label': title },
    element('table', {}, element('caption.visually-hidden', {}, title),
      element('thead', {}, element('tr', {}, columns.map((name) => (name ? element('th', { scope: 'col' }, name) : element('td', {}))))), body));
  const words = element('p.soft', {}, 'Loading …');
  return {
    node: element('section.panel', {}, element('h2.row', {}, title, count), table, words),
    show(rows, countText, empty) {
      count.textContent = rows.length ? countText : '';
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

/** Replaces a cell only if its content changed, so a link keeps focus. */
function fill(cell, content) {
  const before = cell.innerHTML;
  const after = typeof content === 'string' ? null : content.outerHTML;
  if (after === null ? cell.textContent !== content || cell.firstElementChild : before !== after) cell.replaceChildren(content);
}
