/** What the words mean, how to read the pictures, and the keys. */

import { element } from '../elements.js';
import { badge } from '../components/badge.js';
import glossary from '../glossary.json' with { type: 'json' };

const PICTURES = [
  'The first plane is the one that shows the claim: through the judged minima and, where there is one, the control.',
  'Colour is linear and ends a little above the peak on the way to the control: what is above has the last colour. Move the clip, or choose log for a wider scale.',
  'The bold contour is the tolerance: the loss, or error, of the higher end plus the tolerance of the verdict. A path inside it has no barrier.',
  'Of a slope the dotted contour is drawn, too: the lowest point of the line plus the tolerance. What is outside is not level with it.',
  'Dots beside the colour bar are the minima at their values.',
  'Under the profile a slider walks along a path: its mark moves on the surfaces, with the value that was measured there.',
  'Where training kept snapshots, a player moves each minimum along its training. Off its own plane a trajectory is projected.',
  'Hatched cells are not computed yet. A surface begins coarse and sharpens in place.',
  'The white curve is the fitted path. Where it does not lie in the plane, its projection is drawn.',
  'A minimum farther off the plane than a tenth of its longer side is named above the frame, not drawn.',
  'Both axes have the same scale, so distances can be compared by eye. Where a plane is very flat or tall, one axis is stretched and a note says by how much.',
];
const KEYS = [
  [['Tab', 'Shift + Tab'], 'go to the next or previous control'],
  [['Enter', 'Space'], 'press it'],
  [['←', '→'], 'change the tab'],
  [['←', '→', '↑', '↓'], 'on a picture: go over the surface, or along the paths; with Shift five points at a time'],
  [['Space'], 'on the slider of a path or of the training: play and pause'],
  [['Ctrl + wheel'], 'zoom a surface; the wheel alone scrolls the page'],
  [['←', '→', '↑', '↓'], 'in the matrix of minima: go to another pair; Enter judges it'],
  [['Esc'], 'close a question without doing anything, or leave the point'],
];

export default function mount(root) {
  document.title = 'Help · Valleyscope';
  root.append(element('div.page.narrow', {},
    element('h1', { tabIndex: -1 }, 'What the words mean'),
    panel('verdicts', 'Verdicts', terms(Object.entries(glossary.verdicts).map(([kind, text]) => [badge(kind), text, kind]))),
    panel('words', 'Words', terms(Object.entries(glossary.words).map(([word, text]) => [word, text, word]))),
    panel('pictures', 'Reading the pictures', element('ul.points', {}, PICTURES.map((text) => element('li', {}, text)))),
    panel('keys', 'Keys', terms(KEYS.map(([keys, text]) => [element('span', {}, keys.map((key, index) => [index ? ' ' : '', element('kbd', {}, key)])), text]))),
    panel('elsewhere', 'Without this page', element('p', {},
      'Everything here is also offered by the command ', element('code', {}, 'valley'), ' and by the REST API, which ',
      element('a', { href: '/api/openapi.json' }, '/api/openapi.json'), ' describes.'))));
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  return {};
}

function panel(id, title, content) {
  return element('section.panel', { id }, element('h2', {}, title), content);
}

function terms(entries) {
  return element('dl.terms', {}, entries.map(([term, text, name]) => element('div', { id: name ? name.replaceAll(' ', '-') : null },
    element('dt', {}, term), element('dd', {}, text))));
}
