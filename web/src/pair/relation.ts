// Which parts of one tensor make which part of the other: fused projections, pieces on ranks.
import type { Pair, Step } from '../net/types';

export interface Piece {
  label: string;
  /** The pair that it belongs to; null where it is a rank of the same one. */
  pair: number | null;
  from: number;
  size: number;
}

/** The whole of one side, and what it is made of. */
export interface Whole {
  side: 'a' | 'b';
  name: string;
  axis: number;
  size: number;
  how: 'fused' | 'ranks';
  pieces: Piece[];
}

const isRanks = (step: Step) => step.op === 'concat' || step.op === 'concat_parts';
const numbers = (value: unknown): number[] => (Array.isArray(value) ? value.map(Number) : []);

/** The part of its tensor that a pair uses, if it is not all of it. */
export function partOf(
  pair: Pair,
  side: 'a' | 'b',
): { axis: number; from: number; size: number } | null {
  const step = pair.transforms[side].find((each) => each.op === 'select');
  if (!step) return null;
  const axis = Number(step.axis);
  const from = Number(step.first ?? step.from ?? 0);
  const size = Number(step.size);
  return Number.isFinite(axis + from + size) ? { axis, from, size } : null;
}

/** The tensor that a part is of: "qkv.weight" of "qkv.weight[k]". */
export const wholeName = (name: string) => name.replace(/\[[^\]]*\]$/, '');

const tail = (name: string) => name.split(/[./]/).slice(-2).join('.');

/** The pairs that share a tensor of one side, each with its part of that. */
export function fusedOf(pairs: readonly Pair[], side: 'a' | 'b'): Whole | null {
  const other = side === 'a' ? 'b' : 'a';
  const first = pairs[0]?.[side];
  const pieces = pairs.flatMap((pair) => {
    const part = partOf(pair, side);
    return part ? [{ part, label: tail(pair[other]?.name ?? ''), pair: pair.id }] : [];
  });
  if (!first || pieces.length === 0) return null;
  const { axis } = pieces[0].part;
  return {
    side,
    name: wholeName(first.name),
    axis,
    size:
      first.shape[axis] ??
      pieces.reduce((sum, { part }) => Math.max(sum, part.from + part.size), 0),
    how: 'fused',
    pieces: pieces
      .map(({ part, label, pair }) => ({ label, pair, from: part.from, size: part.size }))
      .sort((x, y) => x.from - y.from),
  };
}

/** A side that was put together from ranks. */
export function ranksOf(pair: Pair, side: 'a' | 'b'): Whole | null {
  const step = pair.transforms[side].find(isRanks);
  const data = pair[side];
  if (!step || !data) return null;
  const ranks = Number(step.ranks);
  const parts = numbers(step.parts).length || 1;
  if (!(ranks > 1) || ranks * parts > 512) return null;
  // Each part is dealt out to all ranks: [q of 0, q of 1, k of 0, k of 1 …].
  const pieces = Array.from({ length: ranks * parts }, (_, i) => ({
    label: `rank ${i % ranks}`,
    pair: null,
    from: i,
    size: 1,
  }));
  return {
    side,
    name: data.name,
    axis: Number(step.axis),
    size: pieces.length,
    how: 'ranks',
    pieces,
  };
}
