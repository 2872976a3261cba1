// The card of values: 1D, 2D or flat; from and to; how many digits.
import type { ComponentChildren } from 'preact';
import { elementsOf, parseRange, type Range } from '../fmt/shape';
import type { Pair } from '../net/types';
import { digits } from '../store/prefs';
import * as view from '../store/view';
import { Field } from '../ui/Field';
import { Pick } from '../ui/parts';
import { FlatGrid } from './FlatGrid';
import { Grid2D } from './Grid2D';
import { LINES_MAX, List1D } from './List1D';
import { flatFrom, left, top } from './state';

const VIEWS: [view.ValueView, string][] = [
  ['1d', '1D'],
  ['2d', '2D'],
  ['flat', 'Flat'],
];

function RangeBox({ side }: { side: 'a' | 'b' }) {
  const slice = side === 'a' ? view.sliceA.value : view.sliceB.value;
  const range = side === 'a' ? view.rangeA.value : view.rangeB.value;
  const { w } = view.planeSize(slice);
  const set = (next: Range) => {
    const short = { from: next.from, to: Math.min(next.to, next.from + LINES_MAX) };
    if (side === 'a') view.setRange(short);
    else view.rangeB.value = short;
    if (side === 'a') left.value = short.from;
  };
  const name = view.linked.value ? 'Values from:to' : `Values of ${side.toUpperCase()} from:to`;
  return (
    <Field
      label={name}
      title={`${name}, of ${w}`}
      value={`${range.from}:${range.to}`}
      onTake={(text) => {
        const next = parseRange(text, w);
        if (next) set(next);
        return next ? '' : `not a range within 0:${w}`;
      }}
    />
  );
}

/** From where the other two views start: a row of the plane, or a flat position. */
function StartBox() {
  const isFlat = view.valueView.value === 'flat';
  const slice = view.sliceA.value;
  const most = isFlat ? elementsOf(slice.shape) : view.planeSize(slice).h;
  const start = isFlat ? flatFrom : top;
  const name = isFlat ? 'First flat position' : 'First row';
  return (
    <Field
      label={name}
      title={`${name}, of ${most}`}
      value={String(start.value)}
      onTake={(text) => {
        const next = parseRange(text, most);
        if (next) start.value = next.from;
        return next ? '' : `not a position below ${most}`;
      }}
    />
  );
}

function Body({ pair }: { pair: Pair }) {
  const empty = view.sliceA.value.shape.some((size) => size === 0);
  if (empty)
    return (
      <div class="empty">
        <p class="b">This tensor is empty</p>
        <p>A shape with a 0 has no elements.</p>
      </div>
    );
  const shown =
    view.sliceA.value.shape.length < 2 && view.valueView.value === '2d'
      ? '1d'
      : view.valueView.value;
  if (shown === '1d') return <List1D pair={pair} />;
  return shown === 'flat' ? <FlatGrid pair={pair} /> : <Grid2D pair={pair} />;
}

export function Values({ pair, lead }: { pair: Pair; lead?: ComponentChildren }) {
  const isComplex = [pair.a, pair.b].some((side) => side?.dtype.startsWith('c'));
  return (
    <div class="card vals">
      <div class="hd">
        {lead ?? <b>Values</b>}
        <fieldset class="seg plain" aria-label="View of values">
          {VIEWS.map(([key, text]) => (
            <button
              key={key}
              type="button"
              aria-pressed={view.valueView.value === key}
              onClick={() => {
                view.valueView.value = key;
              }}
            >
              {text}
            </button>
          ))}
        </fieldset>
        <span class="t3 hide-s">{view.valueView.value === '1d' ? 'from:to' : 'from'}</span>
        {view.valueView.value === '1d' ? <RangeBox side="a" /> : <StartBox />}
        {view.valueView.value === '1d' && !view.linked.value && pair.b && <RangeBox side="b" />}
        {isComplex && <span class="t3">modulus of complex values</span>}
        <span class="sp" />
        <span class="t3 hide-s lg">
          <i class="f" />
          value
        </span>
        {pair.metrics && (
          <span class="t3 hide-s lg">
            <i class="e" />
            difference
          </span>
        )}
        <Pick
          label="Digits"
          value={String(digits.value)}
          options={[3, 4, 5, 6, 7, 9].map((n) => [String(n), `%.${n}g`] as const)}
          onPick={(value) => {
            digits.value = Number(value);
          }}
        />
      </div>
      <Body pair={pair} />
    </div>
  );
}
