// Going to an element: the worst, the next beyond tolerance, an index, a value.

import { counted } from '../fmt/number';
import { flatOf } from '../fmt/shape';
import * as api from '../net/api';
import { isAbort, Latest } from '../net/http';
import type { Pair } from '../net/types';
import { openedPair } from '../store/pair';
import { element, probe, samePlace } from '../store/probe';
import { failed, isOutdated } from '../store/session';
import * as state from '../store/state';
import * as view from '../store/view';
import { snippetOf } from './snippet';
import type { Wanted } from './wanted';

const latest = new Latest();
const ROUNDS_MAX = 64;

export async function jumpToMax() {
  const metrics = (await openedPair())?.metrics;
  if (!metrics?.maxAbsAt) {
    state.say('no element differs');
    return;
  }
  view.goTo(metrics.maxAbsAt);
  const what = metrics.nonfiniteMismatch > 0 ? 'first NaN/Inf mismatch' : 'largest difference';
  state.say(`${what}, at ${metrics.maxAbsAt.join(', ')}`);
}

/** The last thing that was looked for; N goes on with it. */
let last: Wanted = { in: 'tol' };

/** Searches from the cursor on, and once around; tells what it found. */
export async function findNext(what: Wanted, dir: 1 | -1, isFirst = false): Promise<boolean> {
  last = what;
  const pair = await openedPair();
  const session = state.session.value;
  if (!session || !pair || !view.shapeOf(pair)) return false;
  const { shape } = view.sliceA.value;
  const size = shape.reduce((product, each) => product * BigInt(each), 1n);
  if (size === 0n) return false;
  const here = flatOf(view.cursor.value, shape);
  const start = (here + BigInt(dir) + size) % size;
  const wrapped = dir > 0 ? start < here : start > here;
  try {
    const signal = latest.next();
    const hit =
      (await search(session.id, pair, { ...what, dir, from: String(start) }, signal)) ??
      (wrapped ? null : await search(session.id, pair, { ...what, dir }, signal));
    if (!hit) {
      state.notify({ text: 'Nothing found.' }, 2500);
      return false;
    }
    view.goTo(hit.at);
    state.say(`found at ${hit.at.join(', ')}`);
    if (isFirst) await tellCount(session.id, pair, what, signal);
    return true;
  } catch (error) {
    if (!isAbort(error) && !isOutdated(error)) failed(error);
    return false;
  }
}

/** How many there are, once a search begins. */
async function tellCount(s: string, p: Pair, what: Wanted, signal: AbortSignal) {
  const found = await api.find(s, p, { ...what, count: true }, signal);
  if (found.count === undefined) return;
  const all = `${found.countDone ? '' : 'at least '}${counted(found.count, 'hit')}`;
  state.notify({ text: `${all}${found.count > 1 ? '; N goes to the next one' : ''}.` });
}

async function search(s: string, p: Pair, what: Record<string, unknown>, signal: AbortSignal) {
  let ask = what;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const found = await api.find(s, p, { ...ask, limit: 1 }, signal);
    if (found.hits.length > 0) return found.hits[0];
    if (found.done || found.next === null) return null;
    ask = { ...what, from: found.next };
  }
  return null;
}

export const findAgain = (dir: 1 | -1) => findNext(last, dir);

export async function copy(text: string, what: string) {
  try {
    await navigator.clipboard.writeText(text);
    state.notify({ text: `Copied ${what}.` }, 2000);
  } catch {
    state.notify({ text: `Could not copy: ${text}`, bad: true });
  }
}

/** Those of the place that is shown, also where they are still on their way. */
export async function copyValue() {
  const pair = await openedPair();
  const session = state.session.value;
  const at = probe.value;
  if (!session || !pair || view.shapeOf(pair)?.length !== at.length) return;
  const here = element.value;
  try {
    const found = samePlace(here?.at, at) ? here! : await api.element(session.id, pair, at);
    const values = [found.a?.text, found.b?.text].filter((text) => text !== undefined);
    copy(values.join('\t'), 'the values of A and B');
  } catch (error) {
    failed(error);
  }
}

/** Python that loads both sides and gives the numbers of the page. */
export async function copyNumpy() {
  const pair = await openedPair();
  const session = state.session.value;
  if (!pair || !session) return;
  const text = snippetOf(pair, session, view.cursor.value);
  if (text) copy(text, 'Python that loads both sides');
  else
    state.notify({
      text: 'No Python for this pair: it lies in pieces, or NumPy does not read its format.',
    });
}
