/** Where the numbers come from: seeds, statistics, subset, times; the spec; the same by curl and Python; the files. */

import { codeBlock } from '../components/copy-button.js';
import { tabs } from '../components/tabs.js';
import { element } from '../elements.js';
import { bytes, duration, moment } from '../format.js';
import { curl, python } from '../views/snippets.js';

export class ProvenancePanel {
  #observed;
  #download;

  /** @param {(file: {name: string, link: string}) => void} download */
  constructor(observed, download) {
    this.#observed = observed;
    this.#download = download;
    this.facts = element('dl.origins');
    this.files = element('ul.origin-files');
    this.spec = codeBlock('spec of this experiment');
    this.curl = codeBlock('the same by curl');
    this.python = codeBlock('the same by Python');
    const panels = [
      { name: 'facts', title: 'Provenance', content: this.facts },
      { name: 'spec', title: 'Spec', content: this.spec.node },
      { name: 'curl', title: 'By curl', content: this.curl.node },
      { name: 'python', title: 'By Python', content: this.python.node },
      { name: 'files', title: 'Files', content: this.files },
    ];
    this.node = element(
      'section.panel.provenance',
      { 'aria-label': 'Provenance' },
      tabs({ label: 'Provenance', panels }).node,
    );
    this.#write();
  }

  draw() {
    const { experiment, minima, files } = this.#observed;
    const { spec } = experiment;
    const took =
      experiment.started && experiment.finished
        ? ` (${duration((Date.parse(experiment.finished) - Date.parse(experiment.started)) / 1000)})`
        : '';
    const facts = {
      experiment: `${experiment.id}, run ${experiment.run}`,
      'data set': experiment.dataset,
      network: experiment.model,
      seeds: experiment.minima.map((name) => `${name} ${seedOf(name, spec, minima)}`).join(', '),
      'BatchNorm statistics': spec.batch_norm ?? 'population',
      'evaluated on': `${spec.samples ? `the first ${spec.samples.toLocaleString('en')} samples` : 'all samples'} of ${(spec.splits ?? ['train', 'test']).join(' and ')}`,
      submitted: moment(experiment.created),
      ...(experiment.started
        ? {
            ran: `${moment(experiment.started)}${experiment.finished ? ` to ${moment(experiment.finished)}` : ''}${took}`,
          }
        : {}),
      'versions, data fingerprint, machine': 'in landscape.h5 and in the stand-alone report',
    };
    this.facts.replaceChildren(
      ...Object.entries(facts).map(([term, value]) =>
        element('div', {}, element('dt', {}, term), element('dd', {}, value)),
      ),
    );
    this.files.replaceChildren(
      ...files.map((file) =>
        element(
          'li',
          {},
          element('button.plain', { type: 'button', onclick: () => this.#download(file) }, file.name),
          element('span.soft', {}, file.size === null ? 'made when asked for' : bytes(file.size)),
        ),
      ),
    );
  }

  #write() {
    const { spec } = this.#observed.experiment;
    this.spec.show(JSON.stringify(spec, null, 2));
    this.curl.show(curl(spec));
    this.python.show(python(spec));
  }
}

function seedOf(name, spec, minima) {
  return minima[name]?.settings.seed ?? spec.minima[name]?.seed ?? spec.seed ?? 0;
}
