/** Server-sent events by fetch, because EventSource cannot send the API key. */

const TIMEOUT = 45_000; // the server sends something every 15 s
const RETRY_DELAY = 1000;

/** Follow the events of an experiment; see `api.events`. */
export function followEvents(send, id, { follow, onEvent }) {
  const closing = new AbortController();
  let after = 0;
  run(closing.signal).catch((error) => {
    if (!closing.signal.aborted && error.status !== 404) throw error;
  });
  return () => closing.abort();

  async function run(signal) {
    while (!signal.aborted) {
      const again = await listen(signal);
      if (!again || !follow) break;
      await pause(RETRY_DELAY, signal);
    }
  }

  /** Reads one connection; resolves to true if more events may follow. */
  async function listen(signal) {
    const connection = new AbortController();
    const stop = () => connection.abort();
    signal.addEventListener('abort', stop);
    let timer = setTimeout(stop, TIMEOUT);
    try {
      const path = `/api/experiments/${encodeURIComponent(id)}/events?after=${after}${follow ? '' : '&follow=false'}`;
      const response = await send('GET', path, { accept: 'text/event-stream', signal: connection.signal });
      if (response.status === 204) return false;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ''; ;) {
        const { done, value } = await reader.read();
        if (done) return true;
        clearTimeout(timer);
        timer = setTimeout(stop, TIMEOUT);
        const frames = (rest + value).split('\n\n');
        rest = frames.pop();
        for (const event of frames.map(parse).filter(Boolean)) {
          after = event.id;
          onEvent(event);
        }
      }
    } catch (error) {
      if (signal.aborted) return false;
      if (error.status && error.status < 500) throw error;
      return true; // disconnected, timed out, or a server error
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      stop();
    }
  }
}

function parse(frame) {
  const fields = {};
  for (const line of frame.split('\n')) {
    const [, name, value] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
    if (name) fields[name] = value;
  }
  return fields.data ? { id: Number(fields.id), kind: fields.event, data: JSON.parse(fields.data) } : null;
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
