/** The menu of what can be taken away: the picture on screen as PNG and SVG, and the files of the experiment. */

import { notify } from '../components/toasts.js';
import { element } from '../elements.js';
import { bytes } from '../format.js';
import { save } from '../plots/export.js';

const WORDS = {
  'landscape.h5': 'HDF5, everything',
  'report.html': 'stand-alone HTML',
  'surface.csv': 'CSV, surfaces',
  'spec.json': 'spec',
  'verdict.json': 'verdict',
};

export class Downloads {
  #observed;
  #api;

  /** @param {{picture: (format: string) => Promise<Blob>}} source */
  constructor(observed, api, source) {
    this.#observed = observed;
    this.#api = api;
    this.source = source;
    this.list = element('div.menu-list');
    const summary = element('summary.button', {}, 'Download');
    this.node = element(
      'details.menu',
      {
        ontoggle: () => {
          if (this.node.open) this.#fill();
        },
      },
      summary,
      this.list,
    );
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

  /** Fetched rather than linked to: a server with a key wants it with each request. */
  file = async ({ name, link }) => {
    await this.#attempt(name, async () => save(await this.#api.blob(link), `${this.#observed.id}-${name}`));
  };

  #fill() {
    const { experiment, files, planes } = this.#observed;
    const entry = (name, words, size, action) =>
      element(
        'button.plain',
        {
          type: 'button',
          'data-file': name,
          onclick: () => {
            this.node.open = false;
            action();
          },
        },
        element('span', {}, words),
        element('small.soft', {}, size),
      );
    const picture = (format) =>
      this.#attempt(format, async () =>
        save(await this.source.picture(format), `${experiment.name}-${this.source.name()}.${format}`),
      );
    const pictures = planes.size
      ? ['png', 'svg'].map((format) =>
          entry(format, `picture as ${format.toUpperCase()}`, 'as on screen', () => picture(format)),
        )
      : [];
    const others = files.map((file) =>
      entry(
        file.name,
        WORDS[file.name] ?? `weights of ${file.name.replace('.safetensors', '')}`,
        [file.name, file.size === null ? null : bytes(file.size)].filter(Boolean).join(', '),
        () => this.file(file),
      ),
    );
    this.list.replaceChildren(...pictures, ...others);
  }

  async #attempt(name, action) {
    try {
      await action();
    } catch (error) {
      notify(`${name} could not be downloaded: ${error.message}`, { bad: true });
    }
  }
}
