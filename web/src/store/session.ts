// Opening a session and following it: rows first, metrics as they come.
import { batch } from '@preact/signals';
import * as api from '../net/api';
import { ApiError, isAbort, Latest, Unreachable, withToken } from '../net/http';
import type { Session } from '../net/types';
import { labelOf } from '../tree/flatten';
import { culprit } from './culprit';
import { PairStore } from './pairs';
import * as state from './state';
import { CLASSES } from './status';
import { forgetPlace } from './view';

const RETRY_MS = [500, 1000, 2000, 4000, 8000];
const QUIET_MS = 150;

let events: EventSource | null = null;
let failures = 0;
let refreshTimer = 0;
const fetching = new Latest();
/** Sessions on their way to the screen: news of the one before must not call them off. */
let opens = 0;

const isRunning = ({ state }: Pick<Session, 'state'>) =>
  ['matching', 'comparing', 'explaining'].includes(state);

/** Where a person should look first: the first divergence, the largest change, the first pair. */
function firstPair(session: Session, store: PairStore): number | null {
  const found = culprit(session, store);
  if (found >= 0) return store.id(found);
  const order = store.column('order');
  let best = -1;
  for (let row = 0; row < store.n; row++) {
    // Of one file alone, a tensor.
    if (session.mode === 'explore' && store.isPair(row)) continue;
    if (best < 0 || (order && order[row] < order[best])) best = row;
  }
  return best < 0 ? null : store.id(best);
}

/** Most pairs within one file cannot be compared: their chip says how many, and brings them. */
function showUseful(session: Session, anew: boolean) {
  const all = state.classes.value.size === CLASSES.length;
  if (anew && all && session.mode === 'explore')
    state.classes.value = new Set(CLASSES.filter((kind) => kind !== 'nc'));
}

const OPEN_ALL_MAX = 30;

/** Long lists start closed, but for the group of the pair that is open. */
export function closeGroups(store: PairStore, pair: number | null) {
  if (store.n <= OPEN_ALL_MAX) return;
  const labels = new Set(state.grouped.value.groups.map((group) => group.label));
  const row = pair === null ? -1 : store.row(pair);
  if (row >= 0) labels.delete(labelOf(store, row, state.look.value));
  if (labels.size > 0) state.closed.value = labels;
}

export async function openSession(id: string, pair: number | null = null, isStep = false) {
  stopFollowing();
  const store = new PairStore();
  opens++;
  try {
    const signal = fetching.next();
    const [session, columns] = await Promise.all([
      api.session(id, signal),
      api.rows(id, null, signal),
    ]);
    store.take(columns);
    const known = pair !== null && store.row(pair) >= 0;
    const first = known ? pair : firstPair(session, store);
    // In one go: the page is drawn once, as it will stay.
    batch(() => {
      state.connected.value = true;
      state.store.value = store;
      state.arrange();
      state.session.value = session;
      state.rowsRev.value++;
      state.chosenA.value = null;
      state.chosenB.value = null;
      showUseful(session, pair === null);
      closeGroups(store, first);
      state.openPair.value = first;
      if (isStep) state.steps.value++;
    });
    state.awaitsFirst.value = !known && isRunning(session);
    follow(session);
  } catch (error) {
    if (!isAbort(error)) failed(error);
  } finally {
    opens--;
  }
}

/** Of a person who chose it: Back leads to where that was. */
export const enterSession = (id: string) => openSession(id, null, true);

/** How often the server was lost. What was asked before that says nothing of whether it is back. */
let losses = 0;

export function failed(error: unknown) {
  if (error instanceof Unreachable) {
    losses++;
    state.connected.value = false;
    return;
  }
  state.connected.value = true;
  const hint = error instanceof ApiError && error.problem.hint ? ` ${error.problem.hint}` : '';
  const text = error instanceof Error ? error.message : String(error);
  state.notify({ text: text + hint, bad: true }, 12_000);
}

/** Asks whether the server is there again. */
export async function reconnect() {
  if (state.session.value) return refresh();
  try {
    state.health.value = await api.health();
    state.connected.value = true;
  } catch (error) {
    failed(error);
  }
}

/** Rows are not moved while somebody points at them or walks through them. */
const isLookedAt = () => document.querySelector('.rows:is(:hover, :focus-within)') !== null;

/** Fetches what changed since the last time. */
export async function refresh() {
  const current = state.session.value;
  if (!current || opens > 0) return;
  const lostBefore = losses;
  try {
    const signal = fetching.next();
    const store = state.store.value;
    const session = await api.session(current.id, signal);
    const columns = await api.rows(current.id, store.rev < 0 ? null : store.rev, signal);
    const anew = columns.run !== store.run;
    const kept = anew ? keptName() : null;
    store.take(columns);
    batch(() => {
      if (losses === lostBefore) state.connected.value = true;
      state.session.value = session;
      state.store.value = store.renewed();
      state.rowsRev.value++;
      if (anew || !isLookedAt()) state.arrange();
    });
    if (anew) reopen(kept, session);
    else if (state.awaitsFirst.value && session.firstDivergence) showFirst(session);
    // Whoever began to compare: this tab, which may have asked twice, or another one.
    if (!events && isRunning(session)) follow(session);
  } catch (error) {
    if (!isAbort(error)) failed(error);
  }
}

/** Once, with the news of it, and never after a person has chosen where to look. */
function showFirst(session: Session) {
  state.awaitsFirst.value = false;
  const row = culprit(session, state.store.value);
  const pair = row < 0 ? session.firstDivergence!.pair : state.store.value.id(row);
  forgetPlace();
  closeGroups(state.store.value, pair);
  state.openPair.value = pair;
}

const keptName = () => {
  const row = state.openPair.value === null ? -1 : state.store.value.row(state.openPair.value);
  return row < 0 ? null : state.store.value.name(row);
};

/** Pair numbers mean something else after a new run: finds the open pair again by its name. */
function reopen(name: string | null, session: Session) {
  const store = state.store.value;
  state.pair.value = null;
  for (let row = 0; name !== null && row < store.n; row++) {
    if (store.name(row) !== name) continue;
    state.openPair.value = null;
    state.openPair.value = store.id(row);
    return;
  }
  state.openPair.value = firstPair(session, store);
}

function refreshSoon() {
  clearTimeout(refreshTimer);
  refreshTimer = window.setTimeout(refresh, QUIET_MS);
}

/** Whether an answer did not come only because the values are others now; the new ones follow. */
export function isOutdated(error: unknown): boolean {
  const outdated = error instanceof ApiError && error.problem.status === 409;
  if (outdated) refreshSoon();
  return outdated;
}

/** One EventSource for the tab, only while a job runs. */
export function follow(session: Session) {
  stopFollowing();
  if (!isRunning(session)) return;
  const source = new EventSource(withToken(`/sessions/${session.id}/events`));
  events = source;
  source.addEventListener('rev', (event) => {
    failures = 0;
    showProgress(JSON.parse((event as MessageEvent<string>).data));
    refreshSoon();
  });
  source.addEventListener('job', () => {
    stopFollowing();
    refreshSoon();
  });
  source.addEventListener('source', () => refreshSoon());
  source.addEventListener('warn', (event) =>
    state.notify({ text: JSON.parse((event as MessageEvent<string>).data).message }),
  );
  source.addEventListener('gone', () => {
    stopFollowing();
    state.notify({ text: 'This session was deleted in another tab.', bad: true });
  });
  source.onerror = () => {
    // The stream also ends when all is done; the session says which.
    stopFollowing();
    window.setTimeout(refresh, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]);
  };
}

interface News {
  state: Session['state'];
  done: number;
  of: number;
  bytes: number;
  bytesTotal: number;
  bytesPerSec: number;
  etaMs: number | null;
}

function showProgress(news: News) {
  const session = state.session.value;
  if (!session) return;
  const { done, of, bytes, bytesTotal, bytesPerSec, etaMs } = news;
  state.session.value = {
    ...session,
    // That it ended is shown together with what was found, which is fetched next.
    state: isRunning(news) ? news.state : session.state,
    progress: { done, of, bytes, bytesTotal, bytesPerSec, etaMs },
  };
}

export function stopFollowing() {
  events?.close();
  events = null;
  clearTimeout(refreshTimer);
}

/** After a deed that compares again: follow it, and keep what is open. */
export async function rerun(start: Promise<{ id: string }>) {
  try {
    await start;
    await refresh();
  } catch (error) {
    failed(error);
  }
}

/** Of a person who wants to open something else: Back leads here again. */
export const leaveSession = () =>
  batch(() => {
    state.steps.value++;
    closeSession();
  });

export function closeSession() {
  stopFollowing();
  fetching.stop();
  batch(() => {
    state.session.value = null;
    state.classes.value = new Set(CLASSES);
    state.store.value = new PairStore();
    state.pair.value = null;
    state.openPair.value = null;
    state.filterText.value = '';
  });
}
