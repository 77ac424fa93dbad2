/** The bar with the estimate and the Run button, always in reach. Run waits for an estimate of what is on screen. */

import { confirmDialog } from '../components/confirm-dialog.js';
import { problem } from '../components/problem.js';
import { element, icon } from '../elements.js';
import { aboutDuration, counted } from '../format.js';

const LONG_HOURS = 1;

export class RunBar {
  /** @param {{api: object, navigate: Function, onEstimate: (cost: object) => void, onErrors: (error: Error) => string | null, onInvalid: () => void}} options
   *   onErrors: shows the errors at their fields and returns what is left to say; onInvalid: after a refused submission */
  constructor({ api, navigate, onEstimate, onErrors, onInvalid }) {
    Object.assign(this, { api, navigate, onEstimate, onErrors, onInvalid });
    this.submission = null;
    this.pending = null;
    this.cost = null;
    this.sending = false;
    this.text = element('p.run-text', { 'aria-live': 'polite' });
    this.errors = element('div.run-errors');
    this.button = element('button.primary', { type: 'submit', disabled: true }, icon('play'), 'Run it');
    this.node = element('div.run-bar', {}, this.errors, element('div.run-line', {}, this.text, this.button));
  }

  /** What is on screen is being changed: its estimate is out of date. */
  invalidate() {
    this.pending?.abort();
    this.cost = null;
    this.#show('Estimating …', false);
  }

  /** Nothing can be run yet: says why. */
  block(reason) {
    this.invalidate();
    this.errors.replaceChildren();
    this.#show(reason, false);
  }

  /** Estimates a submission; Run then submits it. */
  async estimate(submission) {
    this.invalidate();
    this.submission = submission;
    this.key = crypto.randomUUID?.() ?? String(Math.random());
    this.pending = new AbortController();
    const { signal } = this.pending;
    try {
      const cost = await this.api.post('/api/estimate', submission, { signal });
      this.cost = cost;
      this.errors.replaceChildren();
      this.onEstimate(cost);
      if (!cost.allowed) this.#complain(`This exceeds the server's limit of ${cost.limit_gpu_hours} GPU hours. Make it smaller, or choose “Run anyway”.`);
      this.#show(serviceText(cost), true);
    } catch (error) {
      if (signal.aborted) return;
      this.#refused(error);
    }
  }

  async submit() {
    if (this.sending || this.button.disabled || !this.submission) return;
    if (!(await this.#sure())) return;
    this.sending = true;
    this.button.disabled = true;
    try {
      const made = await this.api.post('/api/experiments', this.submission, { headers: { 'Idempotency-Key': this.key } });
      this.navigate(`/experiments/${made.id}`);
    } catch (error) {
      this.#refused(error);
      this.onInvalid();
    } finally {
      this.sending = false;
      this.button.disabled = false;
    }
  }

  close() {
    this.pending?.abort();
  }

  #sure() {
    const hours = this.cost && (this.cost.service.hours ?? this.cost.core_hours);
    if (!hours || hours <= LONG_HOURS) return true;
    return confirmDialog({
      title: `Run for ${aboutDuration(3600 * hours)}?`,
      text: `${serviceText(this.cost)}. The estimate is good to a factor of two or three. You can cancel it at any time and keep what is computed.`,
      action: 'Run it',
      keep: 'Not yet',
      danger: false,
    });
  }

  #refused(error) {
    this.#complain(this.onErrors(error));
    this.#show('No estimate.', true);
  }

  #complain(message) {
    this.errors.replaceChildren(...(message ? [problem(new Error(message))] : []));
  }

  #show(text, usable) {
    this.text.textContent = text;
    this.text.classList.toggle('soft', !usable);
    this.button.disabled = !usable || this.sending;
  }
}

/** "About 2 min on the 2 workers of this service (2 cores)" */
export function serviceText({ service, core_hours: core }) {
  if (service.hours === null) return `No workers are running: it waits for one. On one core it takes ${aboutDuration(3600 * core)}`;
  const kinds = Object.entries(service.devices).map(([kind, count]) => counted(count, kind)).join(', ');
  const time = aboutDuration(3600 * service.hours);
  return `${time[0].toUpperCase()}${time.slice(1)} on ${service.workers === 1 ? 'the worker' : `the ${service.workers} workers`} of this service (${kinds})`;
}
