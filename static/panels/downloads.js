/** The download menu: the picture on screen as PNG and SVG, the figure of the paper as PDF, and the files of the experiment. */

import { toastErrors } from '../components/toasts.js';
import { element } from '../elements.js';
import { bytes } from '../format.js';
import { save } from '../plots/export.js';

const WORDS = {
  'landscape.h5': 'HDF5, everything',
  'report.html': 'stand-alone HTML',
  'surface.csv': 'CSV, surfaces',
  'matrix.csv': 'CSV, every two minima',
  'spec.json': 'spec',
  'verdict.json': 'verdict',
  'curvature.csv': 'eigenvalues and traces',
  'factors.csv': 'direction factors',
  'theorem.csv': 'predicted and measured group norms',
};

const weights = (name) => {
  const [minimum, ...rest] = name.split('.');
  if (rest[0] !== 'compact') return `weights of ${minimum}`;
  return `compact ${minimum}${rest[1] === 'onnx' ? ' as ONNX' : ''}`;
};

const attempt = (name, action) => toastErrors(action, `Could not download ${name}: `);

export class Downloads {
  #live;
  #api;

  /** @param {{picture: (format: string) => Promise<Blob>}} source */
  constructor(live, api, source) {
    this.#live = live;
    this.#api = api;
    this.source = source;
    this.list = element('div.menu-list');
    const summary = element('summary.button', {}, 'Download');
    this.node = element('details.menu', { ontoggle: () => this.node.open && this.#fill() }, summary, this.list);
    this.node.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return;
      this.node.open = false;
      summary.focus();
    });
    this.outside = (event) => {
      if (!this.node.contains(event.target)) this.node.open = false;
    };
    document.addEventListener('pointerdown', this.outside);
  }

  close() {
    document.removeEventListener('pointerdown', this.outside);
  }

  /** Fetched, not linked: a link cannot send the API key. */
  file = ({ name, link }) => attempt(name, async () => save(await this.#api.blob(link), `${this.#live.id}-${name}`));

  #fill() {
    const { experiment, files, planes } = this.#live;
    const entry = (name, words, size, action) =>
      element('button.plain', { type: 'button', 'data-file': name, onclick: () => { this.node.open = false; action(); } },
        element('span', {}, words), element('small.soft', {}, size));
    const picture = (format) =>
      attempt(format, async () =>
        save(await this.source.picture(format), `${experiment.name}-${this.source.name()}.${format}`),
      );
    const pictures = planes.size
      ? ['png', 'svg'].map((format) =>
          entry(format, `picture as ${format.toUpperCase()}`, 'as on screen', () => picture(format)),
        )
      : [];
    const { id } = this.#live;
    const paper = { name: 'paper.pdf', link: `/api/experiments/${encodeURIComponent(id)}/paper.pdf` };
    // It shows both surfaces above the paths, so it needs all of them.
    const hasPaper = planes.size && this.#live.paths.length && this.#live.splits.length > 1;
    if (hasPaper) pictures.push(entry('paper.pdf', 'figure as PDF', 'for a paper', () => this.file(paper)));
    const others = files.map((file) =>
      entry(
        file.name,
        WORDS[file.name] ?? weights(file.name),
        [file.name, file.size === null ? null : bytes(file.size)].filter(Boolean).join(', '),
        () => this.file(file),
      ),
    );
    this.list.replaceChildren(...pictures, ...others);
  }
}
