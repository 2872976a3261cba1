// Requests to the server: the token of this run, at most four at once, the newest view first.

const BASE = '/api/v1';
const IN_FLIGHT_MAX = 4;

let token = '';

/** The printed URL carries the token behind '#t='. It is kept for this tab and its reloads. */
export function takeToken(hash: string): string {
  const found = /(?:^#|&)t=([\w-]+)/.exec(hash);
  token = found ? found[1] : (sessionStorage.getItem('token') ?? '');
  if (found) {
    // The first use of the storage takes a while: requests go out before it. Whoever reloads even
    // earlier needs the token nevertheless.
    const keep = () => sessionStorage.setItem('token', found[1]);
    setTimeout(keep);
    window.addEventListener('pagehide', keep, { once: true });
  }
  return hash.replace(/(^#|&)t=[\w-]+&?/, '$1');
}

export interface Problem {
  status: number;
  title: string;
  detail: string;
  hint?: string;
  stale?: { a: string; b: string; why: string }[];
}

export class ApiError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail || problem.title);
  }
}

/** The server could not be reached at all. */
export class Unreachable extends Error {}

export const isAbort = (error: unknown) =>
  error instanceof DOMException && error.name === 'AbortError';

interface Waiting {
  start: () => void;
  signal: AbortSignal | undefined;
}

let running = 0;
const waiting: Waiting[] = [];

function next() {
  while (running < IN_FLIGHT_MAX && waiting.length > 0) {
    // Newest first: what was asked for last is what is looked at now.
    const one = waiting.pop()!;
    if (one.signal?.aborted) continue;
    running++;
    one.start();
  }
}

function slot(signal?: AbortSignal): Promise<void> {
  return new Promise((start, reject) => {
    const one = { start, signal };
    waiting.push(one);
    signal?.addEventListener('abort', () => {
      const at = waiting.indexOf(one);
      if (at >= 0) waiting.splice(at, 1);
      reject(new DOMException('superseded', 'AbortError'));
    });
    next();
  });
}

async function problemOf(answer: Response): Promise<Problem> {
  const fallback = { status: answer.status, title: answer.statusText, detail: '' };
  try {
    return { ...fallback, ...(await answer.json()) };
  } catch {
    return { ...fallback, detail: `the server answered ${answer.status}` };
  }
}

export interface Ask {
  method?: string;
  json?: unknown;
  body?: Blob;
  signal?: AbortSignal | undefined;
  accept?: string;
  /** Uploads wait for nobody, and nobody waits for them. */
  unqueued?: boolean;
}

export async function ask(path: string, options: Ask = {}): Promise<Response> {
  if (!options.unqueued) await slot(options.signal);
  try {
    const headers: Record<string, string> = { 'X-Token': token };
    if (options.json !== undefined) headers['Content-Type'] = 'application/json';
    if (options.body) headers['Content-Type'] = 'application/octet-stream';
    if (options.accept) headers.Accept = options.accept;
    const init: RequestInit = { method: options.method ?? 'GET', headers };
    if (options.json !== undefined) init.body = JSON.stringify(options.json);
    if (options.body) init.body = options.body;
    if (options.signal) init.signal = options.signal;
    const answer = await fetch(BASE + path, init).catch((error) => {
      throw isAbort(error) ? error : new Unreachable('the server does not answer');
    });
    if (!answer.ok) throw new ApiError(await problemOf(answer));
    return answer;
  } finally {
    if (!options.unqueued) {
      running--;
      next();
    }
  }
}

export async function askJson<T>(path: string, options: Ask = {}): Promise<T> {
  const answer = await ask(path, options);
  return answer.status === 204 ? (undefined as T) : answer.json();
}

/** For EventSource and links, which cannot send headers. */
export const withToken = (path: string) =>
  `${BASE}${path}${path.includes('?') ? '&' : '?'}token=${token}`;

/** Gives each new request an AbortSignal and aborts the one before it. */
export class Latest {
  private current: AbortController | undefined;

  next(): AbortSignal {
    this.current?.abort();
    this.current = new AbortController();
    return this.current.signal;
  }

  stop() {
    this.current?.abort();
  }
}
