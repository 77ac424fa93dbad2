/** REST client: throws ApiError, asks for the API key when needed, and waits while the server is unreachable. */

import { connection } from './connection.js';
import { askForKey } from './components/api-key-dialog.js';
import { followEvents } from './event-stream.js';

const KEY = 'valley-key';

/** The token of a read-only link, while its view is open: requests then send it instead of the key. */
export const shareAccess = { token: null };

/** An error response. `fields` has its messages by path, such as 'minima.altsdp.mu'. */
class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `The server answered ${status}`);
    this.name = 'ApiError';
    this.status = status;
    this.code = problem.code ?? 'unknown';
    /** @type {Record<string, string>} */
    this.fields = Object.fromEntries((problem.errors ?? []).map((error) => [error.path, error.message]));
  }
}

function storedKey() {
  try { return sessionStorage.getItem(KEY); } catch { return null; }
}

function storeKey(key) {
  try { sessionStorage.setItem(KEY, key); } catch { /* storage is off: you are asked again */ }
}

let dialog = null;

/** Requests that get a 401 share one dialog. */
function askOnce(wrong) {
  dialog ??= askForKey(wrong).then(storeKey).finally(() => { dialog = null; });
  return dialog;
}

/**
 * Sends a request. A GET is sent again when the server is back.
 * @param {{read?: (response: Response) => Promise<unknown>}} [options] read: reads the body; a failure counts as no response
 * @returns {Promise<any>} the successful response, or what `read` returned
 */
export async function send(method, path, { body, headers = {}, signal, type = 'application/json', accept, read } = {}) {
  for (;;) {
    const { token } = shareAccess;
    const key = token === null ? storedKey() : null;
    let response;
    let found;
    try {
      response = await fetch(path, {
        method,
        signal,
        cache: method === 'GET' ? 'default' : 'no-store',
        body,
        headers: {
          ...(body === undefined || type === null ? {} : { 'Content-Type': type }),
          ...(accept ? { Accept: accept } : {}),
          ...(key ? { 'X-API-Key': key } : {}),
          ...(token === null ? {} : { 'X-Share-Token': token }),
          ...headers,
        },
      });
      found = read && response.ok ? await read(response) : response;
    } catch (error) {
      if (signal?.aborted) throw error;
      connection.setOffline();
      if (method !== 'GET') {
        throw new ApiError(0, { code: 'unreachable', detail: 'The server does not answer. Your input is kept: try again when it is back.' });
      }
      await connection.untilOnline(signal);
      continue;
    }
    connection.setOnline();
    if (response.status === 401 && token === null) {
      await askOnce(Boolean(key) && key === storedKey());
      continue;
    }
    if (response.ok) return found;
    throw new ApiError(response.status, await response.json().catch(() => ({})));
  }
}

const json = async (response) => (response.status === 204 ? null : response.json());
const text = (response) => response.text();

export const api = {
  connection,
  get: (path, options) => send('GET', path, { read: text, ...options }).then(JSON.parse),
  post: (path, body, options) => send('POST', path, { body: body === undefined ? undefined : JSON.stringify(body), ...options }).then(json),
  patch: (path, body) => send('PATCH', path, { body: JSON.stringify(body) }).then(json),
  del: (path, options) => send('DELETE', path, options).then(json),
  /** Sends a file as it is. */
  upload: (path, file, options) => send('POST', path, { body: file, type: 'application/octet-stream', ...options }).then(json),
  /** Sends a form with files; the browser writes its content type. */
  form: (path, form, options) => send('POST', path, { body: form, type: null, ...options }).then(json),
  /** The bytes of a file, also where the server wants a key. */
  blob: (path, options) => send('GET', path, { accept: '*/*', ...options }).then((response) => response.blob()),
  /**
   * Follows the events of an experiment, resuming after lost connections; without `follow`, those there are.
   * @param {string} id
   * @param {{follow: boolean, onEvent: (event: {id: number, kind: string, data: any}) => void}} options
   * @returns {() => void} close
   */
  events: (id, options) => followEvents(send, id, options),
};
