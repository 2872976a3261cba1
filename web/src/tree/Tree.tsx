// The pair list: a virtual treegrid with one tab stop. Rows have one height, so the window is
// first = ⌊top / height⌋.
import { useComputed, useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { cancel, drag, drop, ghost, moveOver, pickUp, pointerDown } from '../dnd/pointer';
import { moveRow, open, setClosed } from '../store/deeds';
import * as state from '../store/state';
import { rowMenu } from '../ui/menus';
import { groupAbove, MOVES, moveFocus } from './keys';
import { rowLabel, TreeRow } from './Row';

export const ROW_PX = 24;
const SPARE_ROWS = 4;

const indexOf = (code: number | null) =>
  code === null ? -1 : state.flat.value.codes.indexOf(code);

function targetOf(code: number, after: boolean) {
  const store = state.store.value;
  return {
    kind: 'row' as const,
    id: store.id(code),
    after,
    a: store.text('nameA', code),
    b: store.text('nameB', code),
  };
}

/** Space picks a row up, arrows carry it, Space drops it, Esc lets it be. */
function carry(event: KeyboardEvent, index: number): boolean {
  const { codes } = state.flat.value;
  const code = codes[index];
  if (!drag.value) {
    if (event.key !== ' ' || code < 0) return false;
    const store = state.store.value;
    pickUp({ kind: 'row', id: store.id(code), label: rowLabel(store, code) });
    return true;
  }
  if (event.key === 'Escape') cancel();
  else if (event.key === ' ' || event.key === 'Enter') drop();
  else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    const by = event.key === 'ArrowDown' ? 1 : -1;
    let next = index + by;
    while (codes[next] !== undefined && codes[next] < 0) next += by;
    if (codes[next] === undefined) return true;
    state.focusCode.value = codes[next];
    moveOver(targetOf(codes[next], by > 0));
  } else return false;
  return true;
}

function sideways(event: KeyboardEvent, index: number): boolean {
  const { codes, groups } = state.flat.value;
  const code = codes[index];
  const isRight = event.key === 'ArrowRight';
  if (!isRight && event.key !== 'ArrowLeft') return false;
  if (code < 0) setClosed(groups[-code - 1].label, !isRight);
  else if (!isRight) {
    const above = groupAbove(state.flat.value, index);
    if (above >= 0) state.focusCode.value = codes[above];
  }
  return true;
}

/** Opens a pair; opens or closes a group. */
function openRow(code: number) {
  if (code >= 0) return open(state.store.value.id(code));
  const { label } = state.flat.value.groups[-code - 1];
  setClosed(label, !state.closed.value.has(label));
}

/** The row that an event is about: one listener serves them all. */
function codeOf(event: Event): number | null {
  const row = (event.target as Element).closest<HTMLElement>('[data-code]');
  return row ? Number(row.dataset.code) : null;
}

function onPress(event: PointerEvent) {
  const code = codeOf(event);
  if (code === null || code < 0) return;
  const store = state.store.value;
  pointerDown(event, { kind: 'row', id: store.id(code), label: rowLabel(store, code) });
}

function onKey(event: KeyboardEvent, pageRows: number) {
  if (event.ctrlKey || event.metaKey) return;
  const { codes } = state.flat.value;
  const index = Math.max(0, indexOf(state.focusCode.value));
  const code = codes[index];
  if (code === undefined) return;
  if (event.altKey) {
    if (code >= 0 && (event.key === 'ArrowUp' || event.key === 'ArrowDown')) {
      moveRow(state.store.value.id(code), event.key === 'ArrowUp' ? -1 : 1);
      event.preventDefault();
    }
    return;
  }
  const move = MOVES[event.key];
  if (carry(event, index) || sideways(event, index)) event.preventDefault();
  else if (move) {
    state.focusCode.value = codes[moveFocus(codes.length, index, move, pageRows)];
    event.preventDefault();
  } else if (event.key === 'Enter') {
    openRow(code);
    event.preventDefault();
  }
  if (event.defaultPrevented) event.stopPropagation();
}

/** Keeps the focused row inside the window. */
function keepInView(list: HTMLElement, index: number) {
  const top = index * ROW_PX;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + ROW_PX > list.scrollTop + list.clientHeight)
    list.scrollTop = top + ROW_PX - list.clientHeight;
}

function EmptyList() {
  const { hidden } = state.flat.value;
  const away = Object.values(hidden).reduce((sum, n) => sum + n, 0);
  return (
    <div class="nohits">
      <p class="b">{state.store.value.n === 0 ? 'No tensors yet' : 'Nothing passes the filter'}</p>
      {away > 0 && <p>The status chips hide {away} rows that the filter would show.</p>}
      {state.store.value.n > 0 && (
        <button
          class="btn sm"
          type="button"
          onClick={() => {
            state.filterText.value = '';
            state.classes.value = new Set(['ok', 'close', 'bad', 'nc', 'na']);
          }}
        >
          Show all rows
        </button>
      )}
    </div>
  );
}

export function Tree() {
  const list = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(600);
  const first = useComputed(() => Math.max(0, Math.floor(top.value / ROW_PX) - SPARE_ROWS));

  useEffect(() => {
    const node = list.current!;
    const watch = new ResizeObserver(() => {
      height.value = node.clientHeight;
    });
    watch.observe(node);
    return () => watch.disconnect();
  }, []);
  const focused = useComputed(() => indexOf(state.focusCode.value));
  useSignalEffect(() => {
    if (focused.value >= 0 && list.current) keepInView(list.current, focused.value);
  });

  const { codes } = state.flat.value;
  const shown = Math.ceil(height.value / ROW_PX) + 2 * SPARE_ROWS;
  const last = Math.min(codes.length, first.value + shown);
  const focus = focused.value;
  const rows = [];
  // Without keys: the elements stay where they are, and what scrolls by is written into them.
  for (let index = first.value; index < last; index++)
    rows.push(<TreeRow code={codes[index]} index={index} isFocus={index === focus} />);
  const grouped = state.groupBy.value === 'none' ? '' : ` grouped by ${state.groupBy.value}`;
  const active =
    focus >= first.value && focus < last ? { 'aria-activedescendant': `row-${focus}` } : {};
  return (
    <div
      class="rows"
      ref={list}
      role="treegrid"
      aria-label={`Pairs${grouped}`}
      aria-rowcount={codes.length}
      aria-colcount={5}
      tabIndex={0}
      {...active}
      onScroll={(event) => {
        top.value = event.currentTarget.scrollTop;
      }}
      onFocus={() => {
        if (state.focusCode.value === null) state.focusCode.value = codes[0] ?? null;
      }}
      onClick={(event) => {
        const code = codeOf(event);
        if (code !== null) openRow(code);
      }}
      onPointerDown={onPress}
      onContextMenu={(event) => {
        // From the keyboard it is about the row that has the focus.
        const code = codeOf(event) ?? state.focusCode.value;
        if (code !== null && code >= 0) rowMenu(event, code);
      }}
      onKeyDown={(event) => onKey(event, Math.floor(height.value / ROW_PX) - 1)}
    >
      {codes.length === 0 ? (
        <EmptyList />
      ) : (
        <div class="spacer" style={{ height: `${codes.length * ROW_PX}px` }}>
          <div class="win" style={{ transform: `translateY(${first.value * ROW_PX}px)` }}>
            {rows}
          </div>
        </div>
      )}
    </div>
  );
}

/** Marks the row under a drag; the row itself is not drawn again. */
export function DragMark() {
  const now = drag.value;
  useEffect(() => {
    const over = now?.over;
    if (over?.kind !== 'row') return;
    const node = document.querySelector(`.prow[data-id="${over.id}"]`);
    const mark = now?.item.kind === 'tensor' ? 'marked' : over.after ? 'over-bottom' : 'over-top';
    node?.classList.add(mark);
    return () => node?.classList.remove(mark);
  });
  if (!now || !ghost.value) return null;
  const { x, y } = ghost.value;
  return (
    <div class="ghost clip" style={{ transform: `translate(${x + 10}px, ${y + 8}px)` }}>
      {now.item.label}
    </div>
  );
}
