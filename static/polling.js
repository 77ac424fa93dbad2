/**
 * Calls a function again and again while the page is visible, never twice at once.
 * @param {() => Promise<number>} look returns the pause until the next look, in milliseconds
 * @returns {{now: () => Promise<void>, stop: () => void}}
 */
export function poll(look) {
  let timer = 0;
  let running = null;
  let stopped = false;

  async function once() {
    clearTimeout(timer);
    const pause = await look();
    if (!stopped && !document.hidden) timer = setTimeout(now, pause);
  }

  function now() {
    running ??= once().finally(() => { running = null; });
    return running;
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
