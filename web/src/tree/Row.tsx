// One row of the tree: a group, or a pair.
import { pointerDown } from '../dnd/pointer';
import { cosine, times } from '../fmt/number';
import { parseShape, shapeText } from '../fmt/shape';
import { open, setClosed } from '../store/deeds';
import type { PairStore } from '../store/pairs';
import * as state from '../store/state';
import { CLASSES, classOfCode, LABEL, STATUS, statusText } from '../store/status';
import { Glyph, Icon, Stack } from '../ui/parts';
import type { Group } from './flatten';

/** Where a ratio stands on a bar from 0.01× to 10×. */
export const barPart = (ratio: number) =>
  Number.isNaN(ratio) ? 0 : Math.max(0.03, Math.min(1, (Math.log10(ratio) + 2) / 3));

function Bar({ ratio, kind }: { ratio: number; kind: string }) {
  return (
    <span class="lbar">
      <i>
        <b class={`c-${kind}`} style={{ width: `${(100 * barPart(ratio)).toFixed(1)}%` }} />
      </i>
      <span class={`num ${kind === 'bad' ? 'bad' : ''}`}>{times(ratio)}</span>
    </span>
  );
}

const worstClass = (group: Group) => {
  const order = [2, 1, 0, 3, 4];
  return CLASSES[order.find((k) => group.classes[k] > 0) ?? 4];
};

interface Place {
  index: number;
  isFocus: boolean;
}

export function GroupRow({ group, index, isFocus }: { group: Group } & Place) {
  const isOpen = !state.closed.value.has(group.label);
  const first = state.session.value?.firstDivergence;
  const store = state.store.value;
  const flagged = first ? groupHolds(store, first.pair, group.label) : false;
  const counts = CLASSES.map((kind, i) => `${group.classes[i]} ${LABEL[kind]}`)
    .filter((text) => !text.startsWith('0'))
    .join(', ');
  return (
    <div
      class={`grow ${isFocus ? 'focus' : ''}`}
      role="row"
      id={`row-${index}`}
      aria-level={1}
      aria-expanded={isOpen}
      aria-rowindex={index + 1}
      aria-selected={isFocus}
      onClick={() => setClosed(group.label, isOpen)}
    >
      <span class="chev" role="gridcell">
        <Icon name={isOpen ? 'chev' : 'chevr'} size="s" />
      </span>
      <span class="nm clip" role="gridcell" title={group.label}>
        <span class="clip">{group.label}</span>
        <small>{group.size}</small>
      </span>
      <span role="gridcell">
        {flagged && (
          <span class="flag" title="first divergence">
            <Icon name="flag" size="s" />
            <span class="vh">first divergence</span>
          </span>
        )}
      </span>
      <span role="gridcell">
        <Bar ratio={group.worst} kind={worstClass(group)} />
      </span>
      <span class="mini" role="gridcell" title={counts}>
        <Stack classes={group.classes} kinds={CLASSES} />
        <span class="vh">{counts}</span>
      </span>
    </div>
  );
}

function groupHolds(store: PairStore, pair: number, label: string): boolean {
  const row = store.row(pair);
  return row >= 0 && store.num('layer', row) >= 0
    ? label === `layer ${store.num('layer', row)}`
    : label === store.text('group', row);
}

/** What a row is called inside its group. */
export function labelIn(store: PairStore, row: number, group: string): string {
  const name = store.name(row);
  if (group === 'layer') {
    const stage = store.text('stage', row);
    if (stage) return stage;
    const prefix = store.text('group', row);
    if (prefix && name.startsWith(prefix)) return name.slice(prefix.length + 1) || name;
  }
  if (group === 'name') {
    const cut = Math.max(name.lastIndexOf('.'), name.lastIndexOf('/'));
    return cut > 0 ? name.slice(cut + 1) : name;
  }
  return name;
}

function Tags({ store, row }: { store: PairStore; row: number }) {
  const tags: [string, string][] = [];
  if (store.num('steps', row) > 0) tags.push(['T', 'the layout was changed to compare']);
  if (store.text('matchedBy', row) === 'manual') tags.push(['H', 'paired by hand']);
  if (store.num('note', row) > 0) tags.push(['N', 'has a note']);
  return (
    <span class="tags" role="gridcell">
      {tags.map(([letter, why]) => (
        <span key={letter} class="tag" title={why}>
          {letter}
          <span class="vh"> {why}</span>
        </span>
      ))}
    </span>
  );
}

const nameText = (store: PairStore, row: number) => {
  const a = store.text('nameA', row);
  const b = store.text('nameB', row);
  return a && b && a !== b ? `${a} ↔ ${b}` : a || b;
};

/** Unpaired tensors have a side, a type and a shape instead of metrics. */
function Facts({ store, row }: { store: PairStore; row: number }) {
  const side = store.text('nameA', row) ? 'A' : 'B';
  return (
    <span class="num t3 clip" role="gridcell" title={`${store.text(`dtype${side}`, row)}`}>
      {shapeText(parseShape(store.text(`shape${side}`, row)))}
    </span>
  );
}

export function PairRow({ row, index, isFocus }: { row: number } & Place) {
  const store = state.store.value;
  const id = store.id(row);
  const status = STATUS[store.status(row)];
  const kind = classOfCode[store.status(row)];
  // Every tensor meets every other there: one name says too little.
  const label = state.exploring.value
    ? nameText(store, row)
    : labelIn(store, row, state.groupBy.value);
  const isOpen = state.openPair.value === id;
  const isPair = store.isPair(row);
  const marked = state.chosenA.value === store.text('nameA', row) && !isPair;
  return (
    <div
      class={`prow ${isOpen ? 'open' : ''} ${isFocus ? 'focus' : ''} ${marked ? 'marked' : ''}`}
      role="row"
      id={`row-${index}`}
      aria-level={state.groupBy.value === 'none' ? 1 : 2}
      aria-rowindex={index + 1}
      aria-selected={isOpen}
      data-drop="row"
      data-id={id}
      data-a={store.text('nameA', row)}
      data-b={store.text('nameB', row)}
      onClick={() => open(id)}
      onPointerDown={(event) => pointerDown(event, { kind: 'row', id, label })}
    >
      <span class="gl" role="gridcell" title={statusText(status)}>
        <Glyph kind={kind} size="s" />
        <span class="vh">{statusText(status)}</span>
      </span>
      <span class="nm clip" role="gridcell" title={nameText(store, row)}>
        {label}
      </span>
      <Tags store={store} row={row} />
      {isPair ? (
        <span role="gridcell">
          <Bar ratio={store.num('ratio', row)} kind={kind} />
        </span>
      ) : (
        <Facts store={store} row={row} />
      )}
      <span class="num cosv" role="gridcell">
        {isPair
          ? cosine(store.num('cosine', row))
          : store.text('dtypeA', row) || store.text('dtypeB', row)}
      </span>
    </div>
  );
}
