// Values of the plane around the cursor, a and b side by side.
import { useSignalEffect } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Pair } from '../net/types';
import * as view from '../store/view';
import { elementMenu } from '../ui/menus';
import { PairMark } from '../ui/parts';
import { Cell } from './Cell';
import { fetchWindow, type Values } from './fetch';
import { cellPx, centred, HEAD_PX, keepInside, left, ROW_PX, scale, top } from './state';
import { hideTip, showTip } from './Tip';
import { useBox, useFetched } from './use';

export const GAP_PX = 14;
const LABEL_PX = 46;

interface Fit {
  rows: number;
  cols: number;
}

function fitOf(box: { width: number; height: number }, sides: number, h: number, w: number): Fit {
  const wide = Math.floor((box.width - LABEL_PX - GAP_PX * (sides - 1)) / sides / cellPx());
  const tall = Math.floor((box.height - HEAD_PX) / ROW_PX);
  return { rows: Math.max(1, Math.min(h, tall)), cols: Math.max(1, Math.min(w, wide)) };
}

/** Follows the pointer on a map, else the cursor: a step by as little as needed, a jump into the
 * middle. */
function follow(fit: Fit) {
  const slice = view.sliceA.value;
  const { h, w } = view.planeSize(slice);
  // What the pointer is over in a map comes first.
  const at = view.hover.value?.length === slice.at.length ? view.hover.value : slice.at;
  const y = slice.y < 0 ? 0 : at[slice.y];
  const x = slice.x < 0 ? 0 : at[slice.x];
  const next = (first: number, count: number, index: number, size: number) => {
    const isFar = index < first - 1 || index > first + count;
    return isFar ? centred(index, count, size) : keepInside(first, count, index, size);
  };
  top.value = next(top.peek(), fit.rows, y, h);
  left.value = next(left.peek(), fit.cols, x, w);
}

function useFollow(fit: Fit, h: number, w: number) {
  useSignalEffect(() => follow(fit));
  // A grid of another size starts around the cursor.
  useEffect(() => {
    const slice = view.sliceA.value;
    top.value = centred(slice.y < 0 ? 0 : slice.at[slice.y], fit.rows, h);
    left.value = centred(slice.x < 0 ? 0 : slice.at[slice.x], fit.cols, w);
  }, [fit.rows, fit.cols, h, w]);
}

/** The element of a cell, in the indices of the tensor. */
export function placeOfCell(cell: HTMLElement): { at: number[]; side: 'a' | 'b' } {
  const side = cell.dataset.side === 'b' ? 'b' : 'a';
  const slice = side === 'b' && !view.linked.value ? view.sliceB.value : view.sliceA.value;
  const at = [...slice.at];
  if (slice.y >= 0) at[slice.y] = Number(cell.dataset.y);
  if (slice.x >= 0) at[slice.x] = Number(cell.dataset.x);
  return { at, side };
}

function onArrow(event: KeyboardEvent) {
  const slice = view.sliceA.value;
  const by: Record<string, [number, number]> = {
    ArrowUp: [slice.y, -1],
    ArrowDown: [slice.y, 1],
    ArrowLeft: [slice.x, -1],
    ArrowRight: [slice.x, 1],
    PageUp: [slice.y, -10],
    PageDown: [slice.y, 10],
  };
  const [axis, step] = by[event.key] ?? [-1, 0];
  if (axis < 0) return;
  view.step(axis, step);
  event.preventDefault();
  event.stopPropagation();
}

function onMenu(event: MouseEvent) {
  const cell = (event.target as HTMLElement).closest<HTMLElement>('td[data-x]');
  elementMenu(event, cell ? placeOfCell(cell).at : view.cursor.value);
}

interface TableProps {
  values: Values;
  sides: ('a' | 'b')[];
  y0: number;
  x0: number;
  caption: string;
}

function Table({ values, sides, y0, x0, caption }: TableProps) {
  const slice = view.sliceA.value;
  const [cy, cx] = [slice.y < 0 ? 0 : slice.at[slice.y], slice.x < 0 ? 0 : slice.at[slice.x]];
  const most = (what: 'rows' | 'cols') => Math.max(values[what], values.ofB?.[what] ?? 0);
  const rows = Array.from({ length: most('rows') }, (_, r) => y0 + r);
  const cols = Array.from({ length: most('cols') }, (_, c) => x0 + c);
  const now = scale.value;
  const cells = (side: 'a' | 'b', r: number) =>
    cols.map((x, c) => {
      const own = side === 'b' && values.ofB ? values.ofB : values;
      const isThere = r < own.rows && c < own.cols;
      const i = r * own.cols + c;
      const value = values[side]?.[i];
      // What the other side is too short for is no NaN.
      if (!isThere || value === undefined)
        return (
          <td key={`${side}${x}`} class="gone" title={`not in ${side.toUpperCase()}`}>
            <span class="vh">not in {side.toUpperCase()}</span>
          </td>
        );
      return (
        <Cell
          key={`${side}${x}`}
          side={side}
          value={value}
          a={values.d ? values.a?.[i] : undefined}
          d={values.d?.[i]}
          scale={now}
          isCursor={y0 + r === cy && x === cx}
          y={y0 + r}
          x={x}
        />
      );
    });
  return (
    <table class={`vt ${y0 + values.rows > 99999 ? 'wide' : ''}`}>
      <caption>{caption}</caption>
      <thead>
        <tr>
          <th class="rh" scope="col">
            <span class="vh">row</span>
          </th>
          {sides.map((side, k) => [
            k > 0 && <th key="gap" class="gap" aria-hidden="true" />,
            ...cols.map((x, c) => (
              <th key={`${side}${x}`} scope="col" class={x === cx ? 'hl' : ''}>
                {c === 0 && <PairMark side={side} />}
                {x}
              </th>
            )),
          ])}
        </tr>
      </thead>
      <tbody>
        {rows.map((y, r) => (
          <tr key={y}>
            <th class={`rh ${y === cy ? 'hl' : ''}`} scope="row">
              {y}
            </th>
            {sides.map((side, k) => [
              k > 0 && <td key="gap" class="gap" aria-hidden="true" />,
              ...cells(side, r),
            ])}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Grid2D({ pair }: { pair: Pair }) {
  const [ref, box] = useBox();
  const sides = (['a', 'b'] as const).filter((side) => pair[side]);
  const sliceA = view.sliceA.value;
  const sliceB = view.linked.value ? sliceA : view.sliceB.value;
  const { h, w } = view.planeSize(sliceA);
  const fit = fitOf(box, sides.length, h, w);
  useFollow(fit, h, w);

  const own = (slice: view.Slice) => {
    const size = view.planeSize(slice);
    const y0 = Math.min(top.value, Math.max(0, size.h - fit.rows));
    const x0 = Math.min(left.value, Math.max(0, size.w - fit.cols));
    return {
      y: [y0, Math.min(size.h, y0 + fit.rows)] as const,
      x: [x0, Math.min(size.w, x0 + fit.cols)] as const,
    };
  };
  const spans = own(sliceA);
  const places = [view.atText(sliceA), view.atText(sliceB), view.linked.value];
  const key = [pair.id, pair.v, ...places, spans.y, spans.x].join('|');
  const { value: got, isOld } = useFetched(box.width === 0 ? '' : key, async (asked) => ({
    values: await fetchWindow(asked, spans, own(sliceB)),
    y0: spans.y[0],
    x0: spans.x[0],
  }));
  return (
    <div
      class="vbody"
      ref={ref}
      role="group"
      aria-label="Values, arrow keys move the cursor"
      aria-busy={isOld}
      tabIndex={0}
      onKeyDown={onArrow}
      onWheel={(event) => {
        event.preventDefault();
        const by = Math.sign(event.deltaY || event.deltaX) * 3;
        if (event.shiftKey || event.deltaX)
          left.value = keepInside(left.value + by, fit.cols, Math.max(0, left.value + by), w);
        else top.value = Math.max(0, Math.min(h - fit.rows, top.value + by));
        hideTip();
      }}
      onMouseOver={showTip}
      onMouseLeave={hideTip}
      onClick={(event) => {
        const cell = (event.target as HTMLElement).closest<HTMLElement>('td[data-x]');
        if (cell) view.goTo(placeOfCell(cell).at);
      }}
      onContextMenu={onMenu}
    >
      {got && (
        <Table
          values={got.values}
          sides={sides}
          y0={got.y0}
          x0={got.x0}
          caption={`Values, rows from ${got.y0}, columns from ${got.x0}`}
        />
      )}
    </div>
  );
}
