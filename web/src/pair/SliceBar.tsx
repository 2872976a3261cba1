// A control for each dimension, whatever the rank: a slider where it is fixed, a window where it
// spans the plane.
import { parseRange, type Range } from '../fmt/shape';
import * as state from '../store/state';
import * as view from '../store/view';
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
      <input
        class="ibox one"
        aria-label={`Index in dimension ${axis} as a number`}
        inputMode="numeric"
        value={index}
        onChange={(event) => move(Number(event.currentTarget.value))}
        onKeyDown={(event) => event.key !== 'Escape' && event.stopPropagation()}
      />
    </>
  );
}

function WindowDim({ slice, axis, role }: { slice: view.Slice; axis: number; role: 'y' | 'x' }) {
  const size = slice.shape[axis];
  return (
    <input
      class="ibox"
      aria-label={`${role === 'y' ? 'Rows' : 'Columns'} shown of dimension ${axis}, from:to`}
      value={rangeText(view.zoom.value[role])}
      onChange={(event) => {
        const range = parseRange(event.currentTarget.value, size);
        event.currentTarget.setAttribute('aria-invalid', String(!range));
        if (range) view.zoom.value = { ...view.zoom.value, [role]: range };
      }}
      onKeyDown={(event) => event.key !== 'Escape' && event.stopPropagation()}
    />
  );
}

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
      <span class={isMain && view.activeAxis.value === axis ? 'b' : 't2'}>dim {axis}</span>
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
          aria-label="Slice a and b together"
          title="Slice a and b together"
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
