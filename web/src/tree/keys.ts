// The keys of the tree: a move is a pure function of the rows and the focused one.
import type { Flat } from './flatten';

export type Move = 'up' | 'down' | 'first' | 'last' | 'pageUp' | 'pageDown';

/** The index to focus next; rows on a page decide how far a page goes. */
export function moveFocus(count: number, at: number, move: Move, page: number): number {
  const to = {
    up: at - 1,
    down: at + 1,
    first: 0,
    last: count - 1,
    pageUp: at - page,
    pageDown: at + page,
  }[move];
  return Math.max(0, Math.min(count - 1, to));
}

/** The index of the group row above a row; −1 where there is none. */
export function groupAbove(flat: Flat, index: number): number {
  for (let at = index; at >= 0; at--) if (flat.codes[at] < 0) return at;
  return -1;
}

export const MOVES: Record<string, Move> = {
  ArrowUp: 'up',
  ArrowDown: 'down',
  Home: 'first',
  End: 'last',
  PageUp: 'pageUp',
  PageDown: 'pageDown',
};
