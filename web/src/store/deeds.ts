// What a person can do to the list: walk it, move rows, pair and unpair by hand.
import { batch, effect, untracked } from '@preact/signals';
import type { Deed } from '../dnd/machine';
import { moved } from '../dnd/machine';
import { counted } from '../fmt/number';
import * as api from '../net/api';
import { ApiError } from '../net/http';
import { labelOf } from '../tree/flatten';
import { failed, refresh, rerun } from './session';
import * as state from './state';
import { classOfCode } from './status';
import * as view from './view';

/** Opens a pair, and its group so that it can be seen. */
export function open(id: number) {
  const row = state.store.value.row(id);
  if (row < 0) return;
  batch(() => {
    state.awaitsFirst.value = false;
    if (state.openPair.value !== id) state.steps.value++;
    state.openPair.value = id;
    state.drawer.value = false;
  });
}

/** The tree shows the row of the open pair, however that was opened. */
export function followOpen() {
  effect(() => {
    const id = state.openPair.value;
    const session = state.session.value?.id;
    untracked(() => {
      const row = id === null || session === undefined ? -1 : state.store.value.row(id);
      if (row < 0) return;
      reveal(row);
      state.focusCode.value = row;
    });
  });
}

/** Opens a pair at its worst element, wherever the cursor was. */
export function openWorst(id: number) {
  view.forgetPlace();
  open(id);
  const at = state.pair.value?.id === id ? state.pair.value.metrics?.maxAbsAt : null;
  if (at) view.goTo(at);
}

function reveal(row: number) {
  if (state.flat.value.codes.includes(row)) return;
  const next = new Set(state.closed.value);
  next.delete(labelOf(state.store.value, row, state.look.value));
  state.closed.value = next;
}

/** All rows in the order of the screen, as if every group were open. */
function screenOrder(): Int32Array {
  const before = state.closed.value;
  if (before.size === 0) return state.flat.value.codes;
  state.closed.value = new Set();
  const { codes } = state.flat.value;
  state.closed.value = before;
  return codes;
}

export function walk(by: 1 | -1, onlyDifferent: boolean) {
  const store = state.store.value;
  const codes = screenOrder().filter((code) => code >= 0);
  const current = state.openPair.value === null ? -1 : store.row(state.openPair.value);
  let at = codes.indexOf(current);
  if (at < 0) at = by > 0 ? -1 : codes.length;
  for (at += by; at >= 0 && at < codes.length; at += by) {
    if (onlyDifferent && classOfCode[store.status(codes[at])] !== 'bad') continue;
    open(store.id(codes[at]));
    return;
  }
  state.say(onlyDifferent ? 'no further pair differs' : 'end of the list');
}

function close(labels: ReadonlySet<string>) {
  state.awaitsFirst.value = false;
  state.closed.value = labels;
}

export function setClosed(label: string, isClosed: boolean) {
  const next = new Set(state.closed.value);
  if (isClosed) next.add(label);
  else next.delete(label);
  close(next);
}

export const expandAll = () => close(new Set());
export const collapseAll = () =>
  close(new Set(state.flat.value.groups.map((group) => group.label)));

/** One after the other: what was done last is what the server hears last. */
let turn: Promise<unknown> = Promise.resolve();
function inTurn<T>(deed: () => Promise<T>): Promise<T> {
  const done = turn.then(deed);
  turn = done.catch(() => {});
  return done;
}

// --- order ---

function idsInOrder(): number[] {
  const store = state.store.value;
  const order = store.column('order');
  const rows = Array.from({ length: store.n }, (_, row) => row);
  if (order) rows.sort((x, y) => order[x] - order[y]);
  return rows.map((row) => store.id(row));
}

/** Orders that the server has not been told of yet. */
let ordersLeft = 0;

async function keepOrder(ids: readonly number[]) {
  const session = state.session.value;
  const store = state.store.value;
  const order = store.column('order');
  if (!session || !order) return;
  ids.forEach((id, place) => {
    order[store.row(id)] = place;
  });
  state.sortBy.value = 'order';
  state.store.value = store.renewed();
  state.rowsRev.value++;
  ordersLeft++;
  try {
    // Of several moves in a row only the last is told: it has all of them.
    await inTurn(async () => ordersLeft-- === 1 && api.putOrder(session.id, store.run, [...ids]));
    if (ordersLeft === 0) await refresh();
  } catch (error) {
    failed(error);
  }
}

export function moveRow(id: number, by: 1 | -1) {
  const store = state.store.value;
  const codes = state.flat.value.codes.filter((code) => code >= 0);
  const at = codes.indexOf(store.row(id));
  const other = codes[at + by];
  if (at < 0 || other === undefined) return;
  perform({ kind: 'move', id, to: store.id(other), after: by > 0 });
  state.say(
    `${store.name(store.row(id))} moved ${by > 0 ? 'after' : 'before'} ${store.name(other)}`,
  );
}

export const resetOrder = () => {
  const session = state.session.value;
  if (!session) return;
  inTurn(() => api.putOrder(session.id, state.store.value.run, [])).then(refresh, failed);
};

// --- pairing by hand ---

interface Names {
  a: string;
  b: string;
}

async function setPairings(
  change: (pairs: Names[]) => Names[],
  part: (apart: Names[]) => Names[] = (apart) => apart,
) {
  const session = state.session.value;
  if (!session) return;
  await inTurn(async () => {
    const now = await api.pairings(session.id);
    const pairs = change(now.pairs.map(({ a, b }) => ({ a, b })));
    await rerun(
      api.putPairings(session.id, { pairs, only: now.only, apart: part(now.apart ?? []) }),
    );
  });
}

export async function pairByHand(a: string, b: string) {
  state.chosenA.value = null;
  state.chosenB.value = null;
  try {
    await setPairings(
      (pairs) => [...pairs.filter((p) => p.a !== a && p.b !== b), { a, b }],
      (apart) => apart.filter((p) => !(p.a === a && p.b === b)),
    );
    state.notify({ text: `Paired ${a} with ${b}; saved with this session.` });
  } catch (error) {
    failed(error);
  }
}

/** Pairs again what was taken apart, in the way that it was paired before. */
async function pairAgain(names: Names, byHand: boolean) {
  const rest = (apart: Names[]) => apart.filter((p) => !(p.a === names.a && p.b === names.b));
  try {
    await setPairings((pairs) => (byHand ? [...pairs, names] : pairs), rest);
  } catch (error) {
    failed(error);
  }
}

/** Long enough to see what it did before it is undone. */
const UNDO_MS = 60_000;

/** Takes a pair apart; all others stay as they are. */
export async function unpair(id: number) {
  const store = state.store.value;
  const row = store.row(id);
  if (row < 0 || !store.isPair(row)) return;
  const [a, b] = [store.text('nameA', row), store.text('nameB', row)];
  const byHand = store.isText('matchedBy', row, 'manual');
  try {
    await setPairings(
      (pairs) => pairs.filter((p) => !(p.a === a && p.b === b)),
      (apart) => [...apart, { a, b }],
    );
    state.notify(
      {
        text: `Unpaired ${a} and ${b}.`,
        action: { label: 'Undo', run: () => pairAgain({ a, b }, byHand) },
      },
      UNDO_MS,
    );
  } catch (error) {
    failed(error);
  }
}

/** Pairs the two chosen tensors; says what is missing otherwise. */
export function pairChosen() {
  const [a, b] = [state.chosenA.value, state.chosenB.value];
  if (a !== null && b !== null) pairByHand(a, b);
  else state.say(`choose a tensor of ${a === null ? 'A' : 'B'} first`);
}

export async function importPairings(text: string) {
  const session = state.session.value;
  if (!session) return;
  try {
    const { pairs, fingerprint, only } = JSON.parse(text);
    if (!Array.isArray(pairs)) throw new Error('not a file of pairings: there is no list "pairs"');
    await api.putPairings(session.id, { pairs, only: only === true, fingerprint });
    await rerun(Promise.resolve(session));
    state.notify({ text: `${counted(pairs.length, 'pairing')} imported.` });
  } catch (error) {
    const stale = error instanceof ApiError ? error.problem.stale : undefined;
    if (!stale) return failed(error);
    const first = stale[0] ? `: ${stale[0].a} ↔ ${stale[0].b}, ${stale[0].why}` : '';
    const fits = stale.length === 1 ? 'fits' : 'fit';
    state.notify(
      {
        text: `${counted(stale.length, 'pairing')} no longer ${fits}${first}`,
        bad: true,
      },
      15_000,
    );
  }
}

export function perform(deed: Deed) {
  if (deed.kind === 'pair') pairByHand(deed.a, deed.b);
  else keepOrder(moved(idsInOrder(), deed));
}

/** Swaps the two sides and compares again. */
export function swapSides() {
  const session = state.session.value;
  if (!session || session.mode === 'explore') return;
  const ids = (side: 'a' | 'b') => session[side].map((source) => source.id);
  rerun(api.patchSession(session.id, { a: ids('b'), b: ids('a') }));
}

export function reloadFiles() {
  const session = state.session.value;
  if (session) rerun(api.reload(session.id));
}
