/** Tells that an experiment ended: by the title of the tab and, if you allowed it, by the browser. */

import { element, icon } from './elements.js';

const KEY = 'valley-notify';
const MARKS = { done: '✓', failed: '✗', cancelled: '■' };

const wanted = () => {
  try { return localStorage.getItem(KEY) === 'on'; } catch { return false; }
};
const allowed = () => 'Notification' in window && Notification.permission === 'granted' && wanted();

/** "✓ digits · level valley" */
const endWords = ({ name, state, verdict_kind: kind }) => `${MARKS[state] ?? ''} ${name} · ${state === 'done' && kind ? kind : state}`;

/**
 * @param {object} experiment one that has just ended
 * @param {(path: string) => void} navigate
 */
export function tellEnd(experiment, navigate) {
  document.title = endWords(experiment);
  if (!allowed()) return;
  try {
    const notice = new Notification(endWords(experiment), { body: experiment.sentence ?? experiment.error ?? '', tag: experiment.id });
    notice.onclick = () => { focus(); notice.close(); navigate(`/experiments/${experiment.id}`); };
  } catch { /* some phones have notifications by service workers only: the title says it */ }
}

/** A switch for notices by the browser; nothing where there are none, or you refused them for this site. */
export function noticeSwitch() {
  if (!('Notification' in window) || !isSecureContext || Notification.permission === 'denied') return null;
  const words = element('span');
  const button = element('button.notify', { type: 'button', title: 'The browser tells you when an experiment that you have open ends', onclick: async () => {
    const on = !allowed() && (await Notification.requestPermission()) === 'granted';
    try { localStorage.setItem(KEY, on ? 'on' : 'off'); } catch { /* storage is off: there are no notices */ }
    draw();
  } }, icon('bell'), words);
  function draw() {
    button.setAttribute('aria-pressed', String(allowed()));
    words.textContent = Notification.permission === 'denied' ? 'Blocked by the browser' : 'Notify me';
  }
  draw();
  return button;
}
