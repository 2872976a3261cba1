// Values along the last axis, one a line, from and to as asked: ten unless someone asks for more.
import { sig } from '../fmt/number';
import type { Pair } from '../net/types';
import { digits } from '../store/prefs';
import * as view from '../store/view';
import { PairMark } from '../ui/parts';
import { Cell } from './Cell';
import { fetchWindow, type Values } from './fetch';
import { placeOfCell } from './Grid2D';
import { scale } from './state';
import { hideTip, showTip } from './Tip';
import { useFetched } from './use';

/** As many lines as a person reads; a longer range is what the maps are for. */
export const LINES_MAX = 1000;

interface Line {
  y: number;
  from: number;
}

function Lines({ values, pair, a, b }: { values: Values; pair: Pair; a: Line; b: Line }) {
  const slice = view.sliceA.value;
  const cursor = slice.x < 0 ? 0 : slice.at[slice.x];
  const lines = Math.max(values.a?.length ?? 0, values.b?.length ?? 0);
  const now = scale.value;
  const cell = (side: 'a' | 'b', i: number, line: Line) => {
    const value = values[side]?.[i];
    if (value === undefined)
      return (
        <td key={side} class="plain gone">
          not in {side.toUpperCase()}
        </td>
      );
    const compared = values.d ? values.a?.[i] : undefined;
    return (
      <Cell
        key={side}
        side={side}
        value={value}
        a={compared}
        d={values.d?.[i]}
        scale={now}
        isCursor={line.from + i === cursor}
        y={line.y}
        x={line.from + i}
      />
    );
  };
  return (
    <tbody>
      {Array.from({ length: lines }, (_, i) => {
        const d = values.d?.[i];
        const room = now.atol + now.rtol * Math.abs(values.a?.[i] ?? 0);
        return (
          <tr key={i}>
            <th class={`rh ${a.from + i === cursor ? 'hl' : ''}`} scope="row">
              {a.from + i}
              {!view.linked.value && pair.b && pair.a ? ` | ${b.from + i}` : ''}
            </th>
            {pair.a && cell('a', i, a)}
            {pair.b && cell('b', i, b)}
            {d !== undefined && <td class="plain">{sig(d, digits.value)}</td>}
            {d !== undefined && (
              <td class={`plain ${Math.abs(d) > room ? 'num bad' : ''}`}>
                {d === 0 || room > 0 ? `${sig(d === 0 ? 0 : Math.abs(d) / room, 3)}×` : '–'}
              </td>
            )}
          </tr>
        );
      })}
    </tbody>
  );
}

export function List1D({ pair }: { pair: Pair }) {
  const spansOf = (slice: view.Slice, range: { from: number; to: number }) => {
    const { w } = view.planeSize(slice);
    const row = slice.y < 0 ? 0 : slice.at[slice.y];
    const to = Math.min(range.to, w, range.from + LINES_MAX);
    return {
      y: [row, row + 1] as const,
      x: [Math.min(range.from, Math.max(0, w - 1)), to] as const,
    };
  };
  const sliceB = view.linked.value ? view.sliceA.value : view.sliceB.value;
  const a = spansOf(view.sliceA.value, view.rangeA.value);
  const b = spansOf(sliceB, view.linked.value ? view.rangeA.value : view.rangeB.value);
  const key = [
    pair.id,
    pair.v,
    view.atText(view.sliceA.value),
    view.atText(sliceB),
    view.linked.value,
    a.y,
    a.x,
    b.y,
    b.x,
  ].join('|');
  const { value: got, isOld } = useFetched(key, async (asked) => ({
    values: await fetchWindow(asked, a, b),
    a: { y: a.y[0], from: a.x[0] },
    b: { y: b.y[0], from: b.x[0] },
  }));
  return (
    <div
      class="v1"
      role="group"
      aria-label="Values along the last dimension"
      aria-busy={isOld}
      tabIndex={0}
      onMouseOver={showTip}
      onMouseLeave={hideTip}
      onClick={(event) => {
        const cell = (event.target as HTMLElement).closest<HTMLElement>('td[data-x]');
        if (cell) view.goTo(placeOfCell(cell).at);
      }}
    >
      <table class="vt">
        <thead>
          <tr>
            <th class="rh" scope="col">
              index
            </th>
            {(['a', 'b'] as const).map(
              (side) =>
                pair[side] && (
                  <th key={side} scope="col">
                    <PairMark side={side} />
                  </th>
                ),
            )}
            {got?.values.d && <th scope="col">B − A</th>}
            {got?.values.d && <th scope="col">|Δ| / tol</th>}
          </tr>
        </thead>
        {got && <Lines pair={pair} {...got} />}
      </table>
    </div>
  );
}
