/** Open a landscape: where files of this and of other programs are read. */

import { element } from '../elements.js';

export default function mount(body) {
  body.append(element('section.panel', {},
    element('h2', {}, 'Open a landscape'),
    element('p', {}, 'Drop files onto the ', element('a', { href: '/' }, 'list of experiments'),
      ': landscape.h5 of Valleyscope, plane and curve files of dnn-mode-connectivity, or .h5 files of loss-landscape.'),
    element('p.hint', {}, 'They are opened beside the experiments of this service, and can be compared with them.')));
  return {};
}
