/** A play button, a slider and a speed, for a position that runs from 0 to 1. */

import { element, icon, uniqueId } from '../elements.js';

const SPEEDS = [['0.5', '½×'], ['1', '1×'], ['2', '2×'], ['4', '4×']];
const STILL = matchMedia('(prefers-reduced-motion: reduce)');
const STILL_JUMPS = 10; // with reduced motion: few jumps, well apart
const STILL_PAUSE = 0.6;

export class Playback {
  position = 0;
  playing = false;
  #frame = 0;
  #waited = 0;

  /**
   * @param about {label, thing: what is played, seconds: length at normal speed, steps: of the slider,
   *   text: (position) => words, onmove: (position) => void, onrest: (position) => void after a move by hand or at the end}
   */
  constructor(about) {
    Object.assign(this, { steps: 100, seconds: 4, onrest: () => {} }, about);
    const id = uniqueId('playback');
    this.button = element('button.plain.play', { type: 'button', onclick: () => (this.playing ? this.pause() : this.play()) });
    this.slider = element('input', {
      id, type: 'range', min: '0', max: String(this.steps), step: '1', value: '0',
      oninput: () => { this.pause(); this.#go(Number(this.slider.value) / this.steps); },
      onchange: () => this.onrest(this.position),
    });
    this.slider.addEventListener('keydown', (event) => {
      if (event.key !== ' ') return;
      event.preventDefault();
      this.button.click();
    });
    this.speed = element('select', { 'aria-label': `speed of ${this.thing}` },
      SPEEDS.map(([value, words]) => element('option', { value }, words)));
    this.speed.value = '1';
    this.node = element('div.playback', {}, this.button, element('label', { for: id }, this.label), this.slider, this.speed);
    this.#showButton();
  }

  setSteps(steps) {
    if (steps === this.steps) return;
    this.steps = steps;
    this.slider.max = String(steps);
    this.show(this.position);
  }

  /** Show a position that was chosen elsewhere. */
  show(position) {
    this.position = position;
    this.slider.value = String(Math.round(position * this.steps));
    this.describe();
  }

  describe() {
    this.slider.setAttribute('aria-valuetext', this.text(this.position));
  }

  play() {
    if (this.position >= 1) this.#go(0);
    this.playing = true;
    this.#waited = 0;
    this.#showButton();
    let before = performance.now();
    const tick = (now) => {
      this.#advance(Math.max(0, now - before) / 1000);
      before = now;
      if (this.playing) this.#frame = requestAnimationFrame(tick);
    };
    this.#frame = requestAnimationFrame(tick);
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    cancelAnimationFrame(this.#frame);
    this.#showButton();
    this.onrest(this.position);
  }

  close() {
    this.playing = false;
    cancelAnimationFrame(this.#frame);
  }

  #advance(seconds) {
    const speed = Number(this.speed.value);
    if (STILL.matches) {
      this.#waited += seconds;
      const jumps = Math.min(this.steps, STILL_JUMPS);
      if (this.#waited < Math.max(STILL_PAUSE, this.seconds / jumps / speed)) return;
      this.#waited = 0;
      this.#go(Math.min(1, (Math.floor(this.position * jumps + 1e-6) + 1) / jumps));
    } else this.#go(Math.min(1, this.position + (seconds * speed) / this.seconds));
    if (this.position >= 1) this.pause();
  }

  #go(position) {
    this.show(position);
    this.onmove(position);
  }

  #showButton() {
    this.button.replaceChildren(icon(this.playing ? 'pause' : 'play'));
    this.button.setAttribute('aria-label', `${this.playing ? 'Pause' : 'Play'} ${this.thing}`);
    this.button.title = this.playing ? 'Pause' : 'Play';
  }
}
