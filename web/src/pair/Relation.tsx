// The map of a fused or sharded pair: a bar for the whole, a segment for each part.
import { useFetched } from '../grid/use';
import * as api from '../net/api';
import type { Pair } from '../net/types';
import { open } from '../store/deeds';
import * as state from '../store/state';
import { SideMark } from '../ui/parts';
import { fusedOf, partOf, ranksOf, type Whole, wholeName } from './relation';

/** As many parts as a fused tensor has: query, key, value, gate, up. */
const SIBLINGS_MAX = 12;

function siblings(pair: Pair, side: 'a' | 'b'): number[] {
  const store = state.store.value;
  const column = side === 'a' ? 'nameA' : 'nameB';
  const whole = wholeName(pair[side]!.name);
  const ids: number[] = [];
  for (let row = 0; row < store.n && ids.length < SIBLINGS_MAX; row++)
    if (store.isPair(row) && wholeName(store.text(column, row)) === whole) ids.push(store.id(row));
  return ids;
}

function Bar({ whole, pair }: { whole: Whole; pair: Pair }) {
  return (
    <div class="relation">
      <SideMark side={whole.side} small />
      <span class="nm clip" title={whole.name}>
        {whole.name}
      </span>
      <span class="parts">
        {whole.pieces.map((piece) => {
          const text =
            whole.how === 'ranks'
              ? piece.label
              : `${piece.label}: ${piece.from}:${piece.from + piece.size} of dim ${whole.axis}`;
          const style = { flex: String(piece.size) };
          return piece.pair === null ? (
            <span key={piece.from} class="part" style={style} title={text}>
              {piece.label}
            </span>
          ) : (
            <button
              key={piece.from}
              type="button"
              class={`part ${piece.pair === pair.id ? 'on' : ''}`}
              aria-current={piece.pair === pair.id}
              style={style}
              title={text}
              onClick={() => open(piece.pair!)}
            >
              {piece.label}
            </button>
          );
        })}
      </span>
    </div>
  );
}

function Fused({ pair, side }: { pair: Pair; side: 'a' | 'b' }) {
  const { value: found } = useFetched(`${pair.id} ${pair.v} ${side}`, (asked) =>
    Promise.all(
      siblings(pair, side).map((id) =>
        id === pair.id
          ? pair
          : api.pair(asked.session, id, state.store.value.run, null, asked.signal),
      ),
    ),
  );
  // The parts of one whole have the same map: it stays while one goes from part to part.
  const whole = found?.some((each) => each.id === pair.id) ? fusedOf(found, side) : null;
  return whole ? <Bar whole={whole} pair={pair} /> : null;
}

export function Relation({ pair }: { pair: Pair }) {
  if (!pair.a || !pair.b) return null;
  const sides = (['a', 'b'] as const).map((side) => {
    const ranks = ranksOf(pair, side);
    if (ranks) return <Bar key={side} whole={ranks} pair={pair} />;
    return partOf(pair, side) ? <Fused key={side} pair={pair} side={side} /> : null;
  });
  if (sides.every((side) => side === null)) return null;
  return (
    <section class="relations" aria-label="What is part of what">
      {sides}
    </section>
  );
}
