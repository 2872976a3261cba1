// Values in the order of memory, row-major, as many to a line as fit.
import { useEffect } from 'preact/hooks';
import { digits as grouped } from '../fmt/number';
import { elementsOf, flatOf, placeOf } from '../fmt/shape';
import type { Pair } from '../net/types';
import * as view from '../store/view';
import { PairMark } from '../ui/parts';
import { Cell } from './Cell';
import { fetchFlat, type Values } from './fetch';
import { GAP_PX } from './Grid2D';
import { cellPx, flatFrom, HEAD_PX, ROW_PX, scale } from './state';
import { hideTip, showTip } from './Tip';
import { useBox, useFetched } from './use';

const LABEL_PX = 84;

interface TableProps {
  values: Values;
  pair: Pair;
  from: number;
  cols: number;
  cursor: number;
}

function Table({ values, pair, from, cols, cursor }: TableProps) {
  const sides = (['a', 'b'] as const).filter((side) => pair[side] && values[side]);
  const lines = Math.ceil(values.cols / cols);
  const now = scale.value;
  const head = Array.from({ length: cols }, (_, c) => c);
  return (
    <table class="vt wide">
      <caption>Values in row-major order</caption>
      <thead>
        <tr>
          <th class="rh" scope="col">
            flat
          </th>
          {sides.map((side, k) => [
            k > 0 && <th key="gap" class="gap" aria-hidden="true" />,
            ...head.map((c) => (
              <th key={`${side}${c}`} scope="col">
                {c === 0 && <PairMark side={side} />}+{c}
              </th>
            )),
          ])}
        </tr>
      </thead>
      <tbody>
        {Array.from({ length: lines }, (_, line) => (
          <tr key={line}>
            <th class="rh" scope="row">
              {grouped(String(from + line * cols))}
            </th>
            {sides.map((side, k) => [
              k > 0 && <td key="gap" class="gap" aria-hidden="true" />,
              ...head.map((c) => {
                const i = line * cols + c;
                const value = values[side]?.[i];
                if (value === undefined || i >= values.cols) return <td key={`${side}${c}`} />;
                return (
                  <Cell
                    key={`${side}${c}`}
                    side={side}
                    value={value}
                    a={values.d ? values.a?.[i] : undefined}
                    d={values.d?.[i]}
                    scale={now}
                    isCursor={from + i === cursor}
                    y={0}
                    x={from + i}
                  />
                );
              }),
            ])}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function FlatGrid({ pair }: { pair: Pair }) {
  const [ref, box] = useBox();
  const { shape, at } = view.sliceA.value;
  const total = elementsOf(shape);
  const sides = pair.a && pair.b ? 2 : 1;
  const wide = Math.floor((box.width - LABEL_PX - GAP_PX * (sides - 1)) / sides / cellPx());
  const cols = Math.max(1, Math.min(total, wide));
  const rows = Math.max(1, Math.floor((box.height - HEAD_PX) / ROW_PX));
  const cursor = Number(flatOf(at, shape));
  useEffect(() => {
    const first = Math.floor(flatFrom.peek() / cols) * cols;
    flatFrom.value = first;
    if (cursor >= first && cursor < first + rows * cols) return;
    flatFrom.value = Math.max(0, Math.floor(cursor / cols - rows / 2) * cols);
  }, [cursor, rows, cols]);
  const from = Math.min(flatFrom.value, Math.max(0, total - 1));
  const to = Math.min(total, from + rows * cols);
  const { value: got, isOld } = useFetched(
    box.width === 0 ? '' : [pair.id, pair.v, from, to, cols].join('|'),
    async (asked) => ({
      values: await fetchFlat(asked, shape, from, to),
      from,
      cols,
    }),
  );
  const move = (by: number) => {
    const last = Math.max(0, (Math.ceil(total / cols) - rows) * cols);
    flatFrom.value = Math.max(0, Math.min(last, flatFrom.value + by * cols));
  };
  return (
    <div
      class="vbody"
      ref={ref}
      role="group"
      aria-label="Values in row-major order, arrow keys move the cursor"
      aria-busy={isOld}
      tabIndex={0}
      data-flat-shape={shape.join(',')}
      onWheel={(event) => {
        event.preventDefault();
        move(Math.sign(event.deltaY) * 3);
        hideTip();
      }}
      onKeyDown={(event) => {
        const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -cols, ArrowDown: cols }[event.key];
        if (by === undefined) return;
        const next = Math.max(0, Math.min(total - 1, cursor + by));
        view.goTo(placeOf(BigInt(next), shape));
        event.preventDefault();
        event.stopPropagation();
      }}
      onMouseOver={showTip}
      onMouseLeave={hideTip}
      onClick={(event) => {
        const cell = (event.target as HTMLElement).closest<HTMLElement>('td[data-x]');
        if (cell) view.goTo(placeOf(BigInt(cell.dataset.x!), shape));
      }}
    >
      {got && (
        <Table values={got.values} pair={pair} from={got.from} cols={got.cols} cursor={cursor} />
      )}
    </div>
  );
}
