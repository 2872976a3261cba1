// The left side: filter box, status chips, group and sort, the tree, the tray.
import { count } from '../fmt/number';
import { collapseAll, expandAll, resetOrder } from '../store/deeds';
import { listWidth } from '../store/prefs';
import * as state from '../store/state';
import { CHIP, CLASSES, type Class, classOfCode, LABEL } from '../store/status';
import { Glyph, Icon, Pick } from '../ui/parts';
import type { GroupBy, SortBy } from './flatten';
import { Tray } from './Tray';
import { DragMark, Tree } from './Tree';

const GROUPS: [GroupBy, string][] = [
  ['layer', 'Layer'],
  ['name', 'Name'],
  ['similarity', 'Similarity'],
  ['none', 'None'],
];
const SORTS: [SortBy, string][] = [
  ['order', 'Layer and stage'],
  ['name', 'Name'],
  ['similarity', 'Similarity'],
  ['difference', 'Difference'],
  ['size', 'Size'],
];

function FilterBox() {
  const error = state.filter.value.error;
  return (
    <div class={`flt ${error ? 'wrong' : ''}`}>
      <Icon name="search" />
      <input
        id="filter"
        aria-label="Filter pairs"
        aria-invalid={error !== ''}
        title={error || 'words, /regex/, Δ>1e-3, cos<0.99, dtype:f16, shape:*×4096, -word'}
        placeholder="Filter: name, /regex/, Δ>1e-3, dtype:f16, shape:*×4096"
        value={state.filterText.value}
        spellcheck={false}
        onInput={(event) => {
          state.filterText.value = event.currentTarget.value;
          // What was found is shown, also in groups that were closed.
          if (event.currentTarget.value !== '') state.closed.value = new Set();
        }}
        onKeyDown={(event) => {
          if (event.key === 'Escape') {
            state.filterText.value = '';
            event.currentTarget.blur();
          } else if (event.key === 'ArrowDown' || event.key === 'Enter') {
            document.querySelector<HTMLElement>('.rows')?.focus();
            event.preventDefault();
          }
          event.stopPropagation();
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </div>
  );
}

/** How many rows of each class the session has; never fewer than it really has. */
function classCounts(): Record<Class, number> {
  state.rowsRev.value;
  const counts = { ok: 0, close: 0, bad: 0, nc: 0, na: 0 };
  const status = state.store.value.column('status');
  // Rows that wait for their metrics are in no class yet.
  if (status) for (const code of status) if (code > 0) counts[classOfCode[code]]++;
  return counts;
}

function toggleClass(kind: Class, alone: boolean) {
  const now = state.classes.value;
  if (alone) {
    state.classes.value = now.size === 1 && now.has(kind) ? new Set(CLASSES) : new Set([kind]);
    return;
  }
  const next = new Set(now);
  if (!next.delete(kind)) next.add(kind);
  state.classes.value = next;
}

/** Shown also where there are none; one file alone has more kinds, and room for those it has. */
const isUsual = (kind: Class) => kind !== 'na' && kind !== 'nc' && !state.exploring.value;

function Chips() {
  const counts = classCounts();
  return (
    <fieldset class="row2 plain" aria-label="Show by status">
      {CLASSES.filter((kind) => counts[kind] > 0 || isUsual(kind)).map((kind) => (
        <button
          key={kind}
          type="button"
          class={`chip ${kind}`}
          aria-pressed={state.classes.value.has(kind)}
          title={`${LABEL[kind]}; with Alt: only these`}
          onClick={(event) => toggleClass(kind, event.altKey)}
        >
          <Glyph kind={kind} size="s" />
          {count(counts[kind])}
          <span class={kind === 'nc' || kind === 'na' ? 'vh' : 'lb'}>
            {kind === 'na' && state.exploring.value ? 'Tensors' : CHIP[kind]}
          </span>
        </button>
      ))}
      <span class="sp" />
      <span class="t3 num" title="rows shown">
        {count(state.flat.value.shown)}
      </span>
    </fieldset>
  );
}

function sort(by: SortBy) {
  state.arrange();
  state.sortBy.value = by;
}

/** Numbers that came while somebody looked at the list. */
function OrderChanged() {
  if (!state.orderChanged.value) return null;
  return (
    <div class="moved">
      <button type="button" class="btn sm" onClick={state.arrange}>
        Order changed: apply
      </button>
    </div>
  );
}

function Arrange() {
  return (
    <div class="row2">
      <span class="t3 word">Group</span>
      <Pick
        label="Group by"
        value={state.groupBy.value}
        options={GROUPS}
        onPick={(value) => {
          state.arrange();
          state.groupBy.value = value as GroupBy;
          state.closed.value = new Set();
        }}
      />
      <span class="t3 word">Sort</span>
      <Pick
        label="Sort by"
        value={state.sortBy.value}
        options={SORTS}
        onPick={(value) => sort(value as SortBy)}
      />
      {state.session.value?.ordered && (
        <button
          type="button"
          class="btn g sm"
          title="Back to the order of the model"
          onClick={resetOrder}
        >
          Reset
        </button>
      )}
      <span class="sp" />
      <button
        type="button"
        class="btn g sm"
        aria-label="Matching and pairings"
        title="Matching and pairings"
        onClick={() => {
          state.dialog.value = 'matching';
        }}
      >
        <Icon name="gear" />
      </button>
      <button type="button" class="btn g sm" aria-label="Expand all groups" onClick={expandAll}>
        <Icon name="exp" />
      </button>
      <button type="button" class="btn g sm" aria-label="Collapse all groups" onClick={collapseAll}>
        <Icon name="col" />
      </button>
    </div>
  );
}

const sortButton = (by: SortBy, text: string) => (
  <button
    type="button"
    title={`Sort by ${text}`}
    onClick={() => sort(state.sortBy.value === by ? 'order' : by)}
  >
    {text}
    {state.sortBy.value === by ? ' ↓' : ''}
  </button>
);

/** Drag, or ← and → when focused; double click for the usual width. */
function Splitter() {
  const width = () => document.querySelector('.side-list')!.getBoundingClientRect().width;
  const set = (px: number) => {
    listWidth.value = Math.round(Math.max(240, Math.min(px, window.innerWidth - 480)));
  };
  return (
    <div
      class="split"
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the list"
      aria-valuemin={240}
      aria-valuemax={800}
      aria-valuenow={listWidth.value || 400}
      tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) set(event.clientX);
      }}
      onDblClick={() => {
        listWidth.value = 0;
      }}
      onKeyDown={(event) => {
        if (event.key === 'ArrowLeft') set(width() - 16);
        if (event.key === 'ArrowRight') set(width() + 16);
      }}
    />
  );
}

export function ListPanel() {
  return (
    <aside class="side-list" aria-label="Tensor pairs">
      <div class="lt">
        <FilterBox />
        <Chips />
        <Arrange />
      </div>
      <div class="cols">
        <span />
        {sortButton('name', state.exploring.value ? 'Tensor' : 'Pair')}
        <span />
        {sortButton('difference', 'max |Δ| / tol')}
        {sortButton('similarity', 'cosine')}
      </div>
      <OrderChanged />
      <Tree />
      <Tray />
      <Splitter />
      <DragMark />
    </aside>
  );
}
