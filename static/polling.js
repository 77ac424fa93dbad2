const HIDDEN_INTERVAL = 10_000;

/**
 * Calls a function repeatedly while the page is visible, or `whileHidden` says so, never twice at once.
 * @param {() => Promise<number>} load returns the milliseconds to wait before the next call
 * @param {{whileHidden?: () => boolean}} [options]
 * @returns {{now: () => Promise<void>, stop: () => void}} now: load as soon as possible, after any load in progress
 */
export function poll(load, { whileHidden = () => false } = {}) {
  let timer = 0;
  let running = null;
  let next = null;
  let stopped = false;

  async function once() {
    clearTimeout(timer);
    const pause = await load();
    if (stopped) return;
    if (!document.hidden) timer = setTimeout(now, pause);
    else if (whileHidden()) timer = setTimeout(now, Math.max(pause, HIDDEN_INTERVAL));
  }

  /** A load in progress may hold old data, so a second one follows it. */
  function now() {
    if (running) return (next ??= running.then(again, again));
    running = once().finally(() => { running = null; });
    return running;
  }

  function again() {
    next = null;
    return stopped ? undefined : now();
  }

  const onVisible = () => { if (!document.hidden && !stopped) now(); };
  document.addEventListener('visibilitychange', onVisible);
  return {
    now,
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisible);
    },
  };
}
