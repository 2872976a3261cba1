// A control for each dimension, whatever the rank: a slider where it is fixed, a window where it
// spans the plane.
import { parseRange, type Range } from '../fmt/shape';
import { LINES_MAX } from '../grid/List1D';
import { left, top } from '../grid/state';
import * as state from '../store/state';
import * as view from '../store/view';
import { Field } from '../ui/Field';
import { Icon, SideMark } from '../ui/parts';
import { findAgain, jumpToMax } from './jumps';

const rangeText = (range: Range) => `${Math.floor(range.from)}:${Math.ceil(range.to)}`;

interface DimProps {
  slice: view.Slice;
  axis: number;
  set: (at: number[]) => void;
  isMain: boolean;
}

function FixedDim({ slice, axis, set, isMain }: DimProps) {
  const size = slice.shape[axis];
  const index = slice.at[axis];
  const move = (to: number) => {
    if (!Number.isInteger(to) || to < 0 || to >= size) return;
    const at = [...slice.at];
    at[axis] = to;
    if (isMain) view.activeAxis.value = axis;
    set(at);
  };
  return (
    <>
      <input
        type="range"
        aria-label={`Index in dimension ${axis}`}
        min={0}
        max={Math.max(0, size - 1)}
        value={index}
        onInput={(event) => move(event.currentTarget.valueAsNumber)}
      />
      <Field
        short
        label={`Index in dimension ${axis} as a number`}
        value={String(index)}
        onTake={(text) => {
          const range = parseRange(text, size);
          if (!range || text.includes(':')) return `not an index below ${size}`;
          move(range.from);
          return '';
        }}
      />
    </>
  );
}

/** Maps and values show a range of rows or columns; the cursor goes along. */
function showRange(slice: view.Slice, role: 'y' | 'x', range: Range) {
  const axis = slice[role];
  if (slice.at[axis] < range.from || slice.at[axis] >= range.to) {
    const at = [...slice.at];
    at[axis] = range.from;
    view.goTo(at);
  }
  view.zoom.value = { ...view.zoom.value, [role]: range };
  if (role === 'x')
    view.setRange({ from: range.from, to: Math.min(range.to, range.from + LINES_MAX) });
  (role === 'y' ? top : left).value = range.from;
}

function WindowDim({ slice, axis, role }: { slice: view.Slice; axis: number; role: 'y' | 'x' }) {
  const size = slice.shape[axis];
  return (
    <Field
      label={`${role === 'y' ? 'Rows' : 'Columns'} shown of dimension ${axis}, from:to`}
      title="from:to; -50: are the last 50"
      value={rangeText(view.zoom.value[role])}
      onTake={(text) => {
        const range = parseRange(text, size);
        if (!range) return `not a range within 0:${size}`;
        showRange(slice, role, range);
        return '';
      }}
    />
  );
}

/** What a dimension is, where that is known. */
export const axisName = (axis: number) => state.pair.value?.axes[axis] || `dim ${axis}`;

const ROLE = { y: 'rows', x: 'columns', fixed: 'fixed' };

function Dim(props: DimProps) {
  const { slice, axis, isMain } = props;
  const role = axis === slice.y ? 'y' : axis === slice.x ? 'x' : null;
  const canTurn = isMain && slice.shape.length > 2;
  const next = role === null ? 'y' : role === 'y' ? 'x' : 'y';
  return (
    <div class="dim">
      <button
        type="button"
        class={`ax ${role ? 'on' : ''}`}
        disabled={!canTurn}
        aria-label={`Dimension ${axis} is ${ROLE[role ?? 'fixed']}; make it ${ROLE[next]}`}
        onClick={() => view.setPlane(axis, next)}
      >
        {role ?? '·'}
      </button>
      <span
        class={isMain && view.activeAxis.value === axis ? 'b' : 't2'}
        title={`dimension ${axis}`}
      >
        {axisName(axis)}
      </span>
      {role && isMain ? (
        <WindowDim slice={slice} axis={axis} role={role} />
      ) : (
        <FixedDim {...props} />
      )}
      <span class="t3 m">/ {slice.shape[axis]}</span>
    </div>
  );
}

function Dims({ side, slice }: { side: 'a' | 'b'; slice: view.Slice }) {
  const set = (at: number[]) => {
    if (side === 'a') view.goTo(at);
    else view.sliceB.value = { ...slice, at };
  };
  const alone = !view.linked.value;
  return (
    <div class="dims">
      {alone && <SideMark side={side} small />}
      {slice.shape.length === 0 && <span class="t2">scalar, one value</span>}
      {slice.shape.map((_, axis) => (
        <Dim key={axis} slice={slice} axis={axis} set={set} isMain={side === 'a'} />
      ))}
    </div>
  );
}

function Jumps({ compared }: { compared: boolean }) {
  const open = (dialog: state.Dialog) => () => {
    state.dialog.value = dialog;
  };
  const apart: [string, string, string, () => void][] = [
    ['tgt', 'Max |Δ|', 'M', jumpToMax],
    ['next', 'Next diff', 'N', () => findAgain(1)],
  ];
  const buttons: typeof apart = [
    ...(compared ? apart : []),
    ['hash', 'Index', 'G', open('index')],
    ['search', 'Find value', 'F', open('find')],
  ];
  return (
    <>
      {buttons.map(([icon, label, key, run]) => (
        <button key={key} type="button" class="btn sm" aria-keyshortcuts={key} onClick={run}>
          <Icon name={icon} />
          <span>{label}</span>
          <kbd aria-hidden="true">{key}</kbd>
        </button>
      ))}
    </>
  );
}

export function SliceBar() {
  const pair = state.pair.value;
  const canLink = !!pair?.shape && !!pair.a && !!pair.b;
  return (
    <section class="slice" aria-label="Slice">
      <div class="dimrows">
        <Dims side="a" slice={view.sliceA.value} />
        {!view.linked.value && pair?.b && pair.a && <Dims side="b" slice={view.sliceB.value} />}
      </div>
      {canLink && (
        <button
          type="button"
          class={`btn g sm ${view.linked.value ? 'on' : ''}`}
          aria-pressed={view.linked.value}
          aria-label="Slice A and B together"
          title="Slice A and B together"
          onClick={() => {
            view.linked.value = !view.linked.value;
            if (view.linked.value) {
              view.sliceB.value = view.sliceA.value;
              view.rangeB.value = view.rangeA.value;
            }
          }}
        >
          <Icon name="link" />
        </button>
      )}
      <Jumps compared={!!pair?.metrics} />
    </section>
  );
}
