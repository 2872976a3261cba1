// The elements that differ most, and the error along each axis: two tabs of one card.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { count, num } from '../fmt/number';
import { useFetched } from '../grid/use';
import * as api from '../net/api';
import type { Hit, Pair } from '../net/types';
import { samePlace } from '../store/probe';
import * as view from '../store/view';
import { beyond } from './Metrics';
import { Profiles } from './Profiles';

const WORST = 64;

function WorstTable({ hits }: { hits: Hit[] }) {
  if (hits.length === 0)
    return (
      <div class="empty">
        <p>No element differs</p>
      </div>
    );
  return (
    <table class="wt">
      <thead>
        <tr>
          <th scope="col">index</th>
          <th scope="col">A</th>
          <th scope="col">B</th>
          <th scope="col">|Δ|</th>
        </tr>
      </thead>
      <tbody>
        {hits.map((hit) => (
          <tr
            key={hit.flat}
            class={samePlace(view.cursor.value, hit.at) ? 'here' : ''}
            onClick={() => view.goTo(hit.at)}
          >
            <td>{hit.at.length === 0 ? 'scalar' : hit.at.join(', ')}</td>
            <td>{num(hit.a)}</td>
            <td>{num(hit.b, 5)}</td>
            <td class="d">{num(hit.distance ?? null, 3)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Arrow keys walk the list, as a click does. */
function onArrow(event: KeyboardEvent, hits: readonly Hit[]) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by === undefined || hits.length === 0) return;
  const here = hits.findIndex((hit) => samePlace(view.cursor.value, hit.at));
  const next = hits[Math.max(0, Math.min(hits.length - 1, here + by))];
  view.goTo(next.at);
  event.preventDefault();
  event.stopPropagation();
}

export function Worst({ pair, lead }: { pair: Pair; lead?: ComponentChildren }) {
  const tab = useSignal<'worst' | 'axes'>('worst');
  const { value: found, isOld } = useFetched(`${pair.id} ${pair.v}`, (asked) =>
    api.worst(asked.session, pair, WORST, asked.signal),
  );
  const wrong = pair.metrics ? beyond(pair.metrics) : 0;
  return (
    <div class="card worst">
      <div class="hd">
        {lead}
        <fieldset class="seg plain" aria-label="Worst elements or error by axis">
          <button
            type="button"
            aria-pressed={tab.value === 'worst'}
            onClick={() => {
              tab.value = 'worst';
            }}
          >
            Worst
          </button>
          <button
            type="button"
            aria-pressed={tab.value === 'axes'}
            onClick={() => {
              tab.value = 'axes';
            }}
          >
            By axis
          </button>
        </fieldset>
        <span class="sp" />
        <span class="t3">{count(wrong)} beyond tol</span>
      </div>
      <div
        class="scroll"
        role="group"
        aria-label={tab.value === 'worst' ? 'Worst elements' : 'Error by axis'}
        aria-busy={isOld}
        tabIndex={0}
        onKeyDown={(event) => tab.value === 'worst' && onArrow(event, found?.worst ?? [])}
      >
        {tab.value === 'worst' ? (
          found && <WorstTable hits={found.worst} />
        ) : (
          <Profiles pair={pair} />
        )}
      </div>
    </div>
  );
}
