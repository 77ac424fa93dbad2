/** What the words mean, how to read the pictures, and the keys. */

import { element } from '../elements.js';
import { badge } from '../components/badge.js';
import glossary from '../glossary.json' with { type: 'json' };

const PICTURES = [
  'Colour is the loss on a logarithmic scale, cut at a level that you can move: what is above it has the last colour.',
  'Hatched cells are not computed yet. A surface begins coarse and sharpens in place.',
  'The white curve is the fitted path. Where it does not lie in the plane, its projection is drawn.',
  'Both axes have the same scale, so distances can be compared by eye.',
];
const KEYS = [
  [['Tab', 'Shift + Tab'], 'go to the next or previous control'],
  [['Enter', 'Space'], 'press it'],
  [['←', '→'], 'change the tab'],
  [['←', '→', '↑', '↓'], 'on a picture: go over the surface, or along the paths; with Shift five points at a time'],
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
