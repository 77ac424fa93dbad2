/** Server-sent events by fetch: unlike EventSource it can send the server's key. */

const SILENCE = 45_000; // the server speaks every 15 s
const PAUSE = 1000;

/** Follow the events of an experiment; see `api.events`. */
export function followEvents(send, id, { after = 0, follow = true, onEvent, onState = () => {} }) {
  const closing = new AbortController();
  run(closing.signal).catch((error) => {
    if (!closing.signal.aborted) {
      onState('ended');
      if (error.status !== 404) throw error;
    }
  });
  return () => closing.abort();

  async function run(signal) {
    while (!signal.aborted) {
      const again = await listen(signal);
      if (!again || !follow) break;
      onState('lost');
      await pause(PAUSE, signal);
    }
    if (!signal.aborted) onState('ended');
  }

  /** One connection; resolves to whether there may be more. */
  async function listen(signal) {
    const patience = new AbortController();
    const stop = () => patience.abort();
    signal.addEventListener('abort', stop);
    let timer = setTimeout(stop, SILENCE);
    try {
      const path = `/api/experiments/${encodeURIComponent(id)}/events?after=${after}${follow ? '' : '&follow=false'}`;
      const response = await send('GET', path, { accept: 'text/event-stream', signal: patience.signal });
      if (response.status === 204) return false;
      onState('live');
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ''; ;) {
        const { done, value } = await reader.read();
        if (done) return true;
        clearTimeout(timer);
        timer = setTimeout(stop, SILENCE);
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
      return true; // cut off, silent for too long, or the server is not well
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
