// The open pair: fetched when another row is opened or its numbers may have changed.
import { batch, effect, untracked } from '@preact/signals';
import * as api from '../net/api';
import { ApiError, isAbort, Latest } from '../net/http';
import type { Pair } from '../net/types';
import { failed, isOutdated } from './session';
import * as state from './state';
import * as view from './view';

const latest = new Latest();
/** Where the URL wants the cursor of the first pair that opens. */
let wanted: Wanted | null = null;

interface Wanted {
  /** Null: whichever opens first. */
  pair: number | null;
  at: number[] | null;
  plane: [number, number] | null;
  zoom: view.Window | null;
  applied: number | null;
}

export const wantPlace = (place: Wanted) => {
  wanted = place;
};

/** Of another pair than the one that was meant, nothing is wanted. */
const wantedOf = (id: number) => (wanted?.pair === null || wanted?.pair === id ? wanted : null);

async function load(sessionId: string, id: number) {
  const signal = latest.next();
  state.pairBusy.value = true;
  try {
    const apply = state.applied.peek();
    const pair = await api.pair(sessionId, id, state.store.value.run, apply, signal);
    if (signal.aborted) return;
    batch(() => {
      const before = state.pair.value;
      const another = before?.id !== pair.id;
      state.pair.value = pair;
      state.pairError.value = null;
      state.pairBusy.value = false;
      const isNew = another || !before?.metrics;
      const place = wantedOf(id);
      if (isNew || place || view.sliceA.value.at.length !== (view.shapeOf(pair) ?? []).length)
        view.lookAt(pair, place?.at);
      if (place?.plane) view.showPlane(...place.plane);
      if (place?.zoom) view.zoom.value = place.zoom;
      wanted = null;
    });
  } catch (error) {
    if (isAbort(error)) return;
    state.pairBusy.value = false;
    if (isOutdated(error)) return;
    // A finding of an old address may be gone: the pair as it is comes instead.
    if (error instanceof ApiError && state.applied.value !== null) applyFinding(null);
    else if (error instanceof ApiError) state.pairError.value = error.message;
    else {
      state.pairError.value = 'The server does not answer; this pair was not loaded yet.';
      failed(error);
    }
  }
}

/** What could not be had while the server was away is asked for when it is back. */
export function followConnection() {
  let was = true;
  effect(() => {
    const now = state.connected.value;
    if (now && !was && state.pairError.peek() !== null) untracked(reloadPair);
    was = now;
  });
}

/** Keeps the pair in step with what is open and with its row's numbers. */
export function followPair() {
  let last = '';
  effect(() => {
    const session = state.session.value;
    const id = state.openPair.value;
    const rev = state.rowsRev.value;
    untracked(() => {
      if (!session || id === null) {
        latest.stop();
        state.pairBusy.value = false;
        return;
      }
      const store = state.store.value;
      const row = store.row(id);
      const now = [session.id, id, store.run, row, store.status(row), store.num('maxAbs', row)];
      // Findings come after the metrics, with the end of the job.
      const key = `${now.join(' ')} ${session.state === 'done'} ${session.findings.length}`;
      if (key === last && state.pair.value?.id === id) return;
      if (state.pair.value?.id !== id) state.applied.value = wantedOf(id)?.applied ?? null;
      last = key;
      if (rev > 0) load(session.id, id);
    });
  });
}

/** The pair that is open, once it is there: what was asked of it must not be done to another. */
export async function openedPair(): Promise<Pair | null> {
  await new Promise<void>((done) => {
    const stop = effect(() => {
      if (state.pairBusy.value) return;
      done();
      queueMicrotask(() => stop());
    });
  });
  const pair = state.pair.value;
  return pair?.id === state.openPair.value ? pair : null;
}

/** Shows the open pair with a finding applied to A, or as it is. */
export function applyFinding(number: number | null) {
  state.applied.value = number;
  reloadPair();
}

export function reloadPair() {
  const session = state.session.value;
  if (session && state.openPair.value !== null) load(session.id, state.openPair.value);
}
