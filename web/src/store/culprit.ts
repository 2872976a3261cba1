// Where a person should look first.
import type { Session } from '../net/types';
import type { PairStore } from './pairs';
import { classOfCode } from './status';

/** How much a pair changed; what cannot be told, such as NaN on one side, is the most. */
function change(store: PairStore, row: number): number {
  const found = store.num('relL2', row);
  return Number.isNaN(found) ? Number.POSITIVE_INFINITY : found;
}

/** The row of the first divergence of a run, or of the largest change of weights; -1 for none. */
export function culprit(session: Session, store: PairStore): number {
  if (!session.firstDivergence) return -1;
  const first = store.row(session.firstDivergence.pair);
  if (session.steps) return first;
  let best = first;
  for (let row = 0; row < store.n; row++)
    if (
      store.isPair(row) &&
      classOfCode[store.status(row)] === 'bad' &&
      (best < 0 || change(store, row) > change(store, best))
    )
      best = row;
  return best;
}
