/** What the words mean, how to read the pictures, and the keys. */

import { element } from '../elements.js';
import { badge } from '../components/badge.js';

const WORDS = [
  ['minimum', 'One trained network, as a point in the space of all weights. sgd is plain stochastic gradient descent, altsdp prunes whole groups of weights while it trains, control is sgd from another initialisation.'],
  ['barrier', 'The highest loss along a path less the loss at the higher of its two ends. Zero: the path never rises above them.'],
  ['tolerance', 'The rise, in nats, up to which a path counts as flat. With the bootstrap interval it decides the verdict.'],
  ['interval', 'The barrier is measured on finitely many samples. The interval says where it lies at the given level, by resampling them.'],
  ['curve', 'A Bézier curve or a polygon between two minima whose bend is trained so that the loss along it is low. Such a curve joins even unrelated minima, so alone it says little.'],
  ['line', 'The straight line between two minima: the average of their weights and all mixtures. If the loss stays low on it, both lie in one basin.'],
  ['control', 'A minimum that has nothing to do with the two in question. If its line is just as flat, flatness means nothing here.'],
  ['plane', 'Two directions in the space of all weights. Axes are distances in that space, with the same unit on both. Points off the plane are projected onto it and drawn hollow.'],
  ['bend', 'The free point of a fitted curve.'],
  ['G', 'The threshold of AltSDP, accumulated over the training. Groups whose weights do not grow beyond it become exactly zero.'],
  ['sparsity', 'The share of parameters that are exactly zero. Zero groups counts whole filters, rows or kernels.'],
  ['sharpness', 'How much the loss rises at a small relative distance around a minimum, on average over random directions.'],
];
const VERDICTS = [
  ['one basin', 'The straight line between the two minima is flat: its barrier stays below the tolerance, with confidence.'],
  ['joined by a curve only', 'The straight line crosses a ridge, a fitted curve goes around it. Compare with the control before you conclude anything.'],
  ['separate', 'Neither the line nor the fitted curve stays below the tolerance.'],
  ['undecided', 'The interval of the barrier contains the tolerance: more data would be needed. Or one of the two networks is hardly better than guessing, so it is no minimum and a flat line says nothing.'],
];
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
    panel('verdicts', 'Verdicts', terms(VERDICTS.map(([kind, text]) => [badge(kind), text, kind]))),
    panel('words', 'Words', terms(WORDS.map(([word, text]) => [word, text, word]))),
    panel('pictures', 'Reading the pictures', element('ul.points', {}, PICTURES.map((text) => element('li', {}, text)))),
    panel('keys', 'Keys', terms(KEYS.map(([keys, text]) => [element('span', {}, keys.map((key, index) => [index ? ' ' : '', element('kbd', {}, key)])), text]))),
    panel('elsewhere', 'Without this page', element('p', {},
      'Everything here is also offered by the command ', element('code', {}, 'valley'), ' and by the REST API, which ',
      element('a', { href: '/api/openapi.json' }, '/api/openapi.json'), ' describes.'))));
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  return { update: () => {}, unmount: () => {} };
}

function panel(id, title, content) {
  return element('section.panel', { id }, element('h2', {}, title), content);
}

function terms(entries) {
  return element('dl.terms', {}, entries.map(([term, text, name]) => element('div', { id: name ? name.replaceAll(' ', '-') : null },
    element('dt', {}, term), element('dd', {}, text))));
}
