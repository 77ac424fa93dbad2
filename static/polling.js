/**
 * Calls a function again and again while the page is visible, never twice at once.
 * @param {() => Promise<number>} look returns the pause until the next look, in milliseconds
 * @returns {{now: () => Promise<void>, stop: () => void}} now: a look that begins after this call, as soon as it may
 */
export function poll(look) {
  let timer = 0;
  let running = null;
  let next = null;
  let stopped = false;

  async function once() {
    clearTimeout(timer);
    const pause = await look();
    if (!stopped && !document.hidden) timer = setTimeout(now, pause);
  }

  /** What is under way may have been answered before that happened for which somebody wants to look again. */
  function now() {
    if (running) return (next ??= running.then(again, again));
    running = once().finally(() => { running = null; });
    return running;
  }

  function again() {
    next = null;
    return stopped ? undefined : now();
  }

  const seen = () => { if (!document.hidden && !stopped) now(); };
  document.addEventListener('visibilitychange', seen);
  return {
    now,
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
    },
  };
}
