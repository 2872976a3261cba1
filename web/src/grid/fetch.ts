// The values of a window for both sides: one request when they are sliced together, two when not.
import * as api from '../net/api';
import type { Pair } from '../net/types';
import { atText, linked, type Slice, sliceA, sliceB } from '../store/view';
import { segments } from './segments';

export interface Values {
  rows: number;
  cols: number;
  a: Float64Array | null;
  b: Float64Array | null;
  d: Float64Array | null;
  /** Of B, where it is sliced by itself and has another size. */
  ofB?: { rows: number; cols: number };
}

export interface Asked {
  session: string;
  pair: Pair;
  signal: AbortSignal;
}

const range = ([from, to]: readonly [number, number]) => `${from}:${to}`;
type Span = readonly [number, number];

async function fetchPlanes(
  asked: Asked,
  plane: string,
  slice: Slice,
  y: Span,
  x: Span,
): Promise<Values> {
  const { session, pair, signal } = asked;
  const query: api.SliceQuery = { plane, at: atText(slice), stored: !pair.shape };
  if (slice.y >= 0) query.y = range(y);
  if (slice.x >= 0) query.x = range(x);
  const got = await api.slice(session, pair, query, signal);
  const of = (name: string) => got.values[got.planes.indexOf(name)] ?? null;
  return { rows: got.rows, cols: got.cols, a: of('a'), b: of('b'), d: of('d') };
}

/** Differences are shown against a tolerance, which a pair has once it was compared. */
const bothPlanes = (pair: Pair) => (pair.metrics ? 'abd' : 'ab');

export interface Spans {
  y: Span;
  x: Span;
}

/** Windows of the two planes; with linked slices only the first counts. */
export async function fetchWindow(asked: Asked, a: Spans, b: Spans = a): Promise<Values> {
  const { pair } = asked;
  const planes = `${pair.a ? 'a' : ''}${pair.b ? 'b' : ''}`;
  if (planes.length === 1) return fetchPlanes(asked, planes, sliceA.value, a.y, a.x);
  if (linked.value && pair.shape)
    return fetchPlanes(asked, bothPlanes(pair), sliceA.value, a.y, a.x);
  const [left, right] = await Promise.all([
    fetchPlanes(asked, 'a', sliceA.value, a.y, a.x),
    fetchPlanes(asked, 'b', sliceB.value, b.y, b.x),
  ]);
  const ofB = { rows: right.rows, cols: right.cols };
  return { rows: left.rows, cols: left.cols, a: left.a, b: right.b, d: null, ofB };
}

/** A run of flat positions, gathered from as few windows as it takes. */
export async function fetchFlat(
  asked: Asked,
  shape: readonly number[],
  from: number,
  to: number,
): Promise<Values> {
  const out: Values = { rows: 1, cols: to - from, a: null, b: null, d: null };
  const rank = shape.length;
  const parts = await Promise.all(
    segments(shape, from, to).map(async ({ outer, y, x, start }) => {
      const at = [...outer, ...(rank >= 2 ? [0] : []), ...(rank >= 1 ? [0] : [])];
      const slice = { shape, at, y: rank >= 2 ? rank - 2 : -1, x: rank >= 1 ? rank - 1 : -1 };
      const { pair } = asked;
      const both = pair.shape ? bothPlanes(pair) : 'a';
      const planes = pair.a && pair.b ? both : pair.a ? 'a' : 'b';
      return { start, values: await fetchPlanes(asked, planes, slice, y, x) };
    }),
  );
  for (const { start, values } of parts) {
    for (const name of ['a', 'b', 'd'] as const) {
      const piece = values[name];
      if (!piece) continue;
      out[name] ??= new Float64Array(to - from);
      out[name].set(piece.subarray(0, to - from - start), start);
    }
  }
  return out;
}
