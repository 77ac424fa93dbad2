/** Provenance of the results (data, seeds, versions, workers, times), spec, curl and Python code, and files. */

import { codeBlock } from '../components/copy-button.js';
import { tabs } from '../components/tabs.js';
import { element } from '../elements.js';
import { bytes, counted, duration, moment } from '../format.js';
import { curl, python } from '../components/code-snippets.js';

export class ProvenancePanel {
  #live;
  #download;

  /** @param {(file: {name: string, link: string}) => void} download */
  constructor(live, download) {
    this.#live = live;
    this.#download = download;
    this.facts = element('dl.provenance-facts');
    this.files = element('ul.provenance-files');
    this.spec = codeBlock('spec of this experiment');
    this.curl = codeBlock('the same by curl');
    this.python = codeBlock('the same by Python');
    const { imported, ...spec } = live.experiment.spec;
    this.imported = imported;
    this.computed = !imported || Boolean(imported.dataset); // files of other tools have no spec
    const panels = [
      { name: 'facts', title: 'Provenance', content: this.facts },
      ...(this.computed ? [
        { name: 'spec', title: 'Spec', content: this.spec.node },
        { name: 'curl', title: 'By curl', content: this.curl.node },
        { name: 'python', title: 'By Python', content: this.python.node },
      ] : []),
      { name: 'files', title: 'Files', content: this.files },
    ];
    this.node = element('section.panel.provenance', { 'aria-label': 'Provenance' },
      tabs('Provenance', panels));
    this.spec.show(JSON.stringify(spec, null, 2));
    this.curl.show(curl(spec));
    this.python.show(python(spec));
  }

  draw() {
    const { experiment, files } = this.#live;
    const { spec } = experiment;
    const { provenance, workers } = this.#live.contents;
    const later = this.#live.active ? 'known when the first minimum is trained' : 'not recorded';
    const uploaded = this.imported && {
      experiment: experiment.id,
      [experiment.origin === 'gallery' ? 'computed' : 'uploaded']: moment(experiment.created),
      files: this.imported.files.join(', '),
      source: this.imported.source,
    };
    const facts = uploaded && !this.computed ? {
      ...uploaded,
      ...(provenance.directions ? { directions: provenance.directions } : {}),
      'BatchNorm mode': batchNorm(provenance.batch_norm ?? 'not recorded'),
    } : {
      ...(uploaded || {
        experiment: `${experiment.id}, run ${experiment.run}`,
        submitted: moment(experiment.created),
        ran: runTime(experiment),
      }),
      'data set': experiment.dataset,
      'data fingerprint': provenance.fingerprint ? element('code', {}, provenance.fingerprint) : later,
      workers: workers.map(worked).join('; ') || (this.#live.active ? 'none yet' : 'not recorded'),
      network: experiment.model,
      machine: provenance.machine ?? later,
      seeds: experiment.minima.map((name) => `${name} ${seedsOf(name, spec, provenance)}`).join(', '),
      versions: listed(provenance.versions) || later,
      'BatchNorm mode': batchNorm(provenance.batch_norm ?? spec.batch_norm ?? 'population'),
      'evaluated on': `${spec.samples ? `the first ${spec.samples.toLocaleString('en')} samples` : 'all samples'} of ${this.#live.splits.join(' and ')}`,
    };
    this.facts.replaceChildren(
      ...Object.entries(facts).map(([term, value]) =>
        element('div', {}, element('dt', {}, term), element('dd', {}, value)),
      ),
    );
    this.files.replaceChildren(
      ...files.map((file) =>
        element('li', {},
          element('button.plain', { type: 'button', onclick: () => this.#download(file) }, file.name),
          element('span.soft', {}, file.size === null ? 'created on download' : bytes(file.size))),
      ),
    );
  }
}

function runTime({ started, finished, active_seconds: active, run }) {
  if (!started) return 'not yet';
  const runs = run > 1 ? ` in ${run} runs` : '';
  return finished ? `${moment(started)} to ${moment(finished)} (${duration(active)}${runs})` : moment(started);
}

/** One number if all seeds of a minimum are equal, else each with its name. */
function seedsOf(name, spec, { seeds = {} }) {
  const known = seeds[name] ?? spec.minima[name]?.seed ?? spec.seed ?? 0;
  if (typeof known !== 'object') return String(known);
  return new Set(Object.values(known)).size === 1 ? String(Object.values(known)[0]) : `(${listed(known)})`;
}

function listed(values) {
  return Object.entries(values ?? {})
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');
}

function worked({ worker, tasks, seconds }) {
  return `${worker}: ${counted(tasks, 'task')}${seconds ? ` in ${duration(seconds)}` : ''}`;
}

function batchNorm(mode) {
  const words = {
    population: 'population: statistics of all training data at each point',
    running: 'running: averages over batches, as training keeps them, at each point',
    frozen: 'frozen: those stored in the checkpoints',
  };
  return words[mode] ?? mode;
}
