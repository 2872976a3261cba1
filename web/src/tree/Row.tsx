// One row of the tree: a group, or a pair.
import type { ComponentChildren } from 'preact';
import { inTwo } from '../fmt/name';
import { cosine, times } from '../fmt/number';
import { parseShape, shapeText } from '../fmt/shape';
import type { PairStore } from '../store/pairs';
import * as state from '../store/state';
import { CLASSES, classOfCode, LABEL, STATUS, statusText } from '../store/status';
import { Icon } from '../ui/parts';
import type { Group } from './flatten';

/** Where a ratio stands on a bar from 0.01× to 10×. */
export const barPart = (ratio: number) =>
  Number.isNaN(ratio) ? 0 : Math.max(0.03, Math.min(1, (Math.log10(ratio) + 2) / 3));

const bar = (ratio: number, kind: string) => (
  <span class="lbar">
    <i>
      <b class={`c-${kind}`} style={{ width: `${(100 * barPart(ratio)).toFixed(1)}%` }} />
    </i>
    <span class={`num ${kind === 'bad' ? 'bad' : ''}`}>{times(ratio)}</span>
  </span>
);

const worstClass = (group: Group) => {
  const order = [2, 1, 0, 3, 4];
  return CLASSES[order.find((k) => group.classes[k] > 0) ?? 4];
};

interface Place {
  code: number;
  index: number;
  isFocus: boolean;
}

/** The shares of the classes, one beside the other. */
function stripes(classes: readonly number[], size: number): string {
  let upTo = 0;
  const parts = CLASSES.map((kind, i) => {
    const from = upTo;
    upTo += (100 * classes[i]) / size;
    return `var(--${kind}) ${from.toFixed(1)}% ${upTo.toFixed(1)}%`;
  });
  return `linear-gradient(90deg, ${parts.filter((_, i) => classes[i] > 0).join(', ')})`;
}

/** Labels of fewer letters fit; of longer ones, so many at the end are never cut. */
const FITS_MAX = 20;
const LAST_MAX = 16;

function labelParts(label: string) {
  const [start, end] = label.length > FITS_MAX ? inTwo(label, LAST_MAX) : [label, ''];
  return (
    <>
      <span class="clip">{start}</span>
      {end && <span class="last">{end}</span>}
    </>
  );
}

interface Cells {
  icon: string;
  iconKind: string;
  status: string;
  label: string;
  /** Of a group, how many rows it has. */
  size: string;
  title: string;
  marks: ComponentChildren;
  bar: ComponentChildren;
}

// Groups and pairs are made of the same elements, and without components of their own: what
// scrolls by is written into them, which has to be quick.
const cells = ({ icon, iconKind, status, label, size, title, marks, bar }: Cells) => (
  <>
    <span class="gl" role="gridcell" title={status}>
      <svg class={`i s ${iconKind}`} aria-hidden="true">
        <use href={icon} />
      </svg>
      <span class="vh">{status}</span>
    </span>
    <span class="nm clip" role="gridcell" title={title}>
      {labelParts(label)}
      <small>{size}</small>
    </span>
    <span class="tags" role="gridcell">
      {marks}
    </span>
    <span role="gridcell">{bar}</span>
  </>
);

const flag = (what: string) => (
  <span class="flag" title={what}>
    <Icon name="flag" size="s" />
    <span class="vh">{what}</span>
  </span>
);

/** The divergences that a row or group has, as one flag. */
function flagOf(has: (pair: number) => boolean) {
  const { firstDivergence, nextDivergences, steps } = state.session.value!;
  if (steps && firstDivergence && has(firstDivergence.pair)) return flag('first divergence');
  return nextDivergences.some((each) => has(each.pair)) ? flag('later divergence') : null;
}

function groupRow(group: Group, { code, index, isFocus }: Place) {
  const isOpen = !state.closed.value.has(group.label);
  const flagged = flagOf((pair) => groupHolds(state.store.value, pair, group.label));
  const counts = CLASSES.map((kind, i) => `${group.classes[i]} ${LABEL[kind]}`)
    .filter((_, i) => group.classes[i] > 0)
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
      data-code={code}
    >
      {cells({
        icon: isOpen ? '#i-chev' : '#i-chevr',
        iconKind: '',
        status: '',
        label: group.label,
        size: String(group.size),
        title: group.label,
        marks: flagged,
        bar: bar(group.worst, worstClass(group)),
      })}
      <span
        class="mini"
        role="gridcell"
        title={counts}
        style={{ background: stripes(group.classes, group.size) }}
      >
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

function tagsOf(store: PairStore, row: number) {
  const tags: [string, string][] = [];
  if (store.num('steps', row) > 0) tags.push(['T', 'the layout was changed to compare']);
  if (store.isText('matchedBy', row, 'manual')) tags.push(['H', 'paired by hand']);
  if (store.num('note', row) > 0) tags.push(['N', 'has a note']);
  return tags.map(([letter, why]) => (
    <span key={letter} class="tag" title={why}>
      {letter}
      <span class="vh"> {why}</span>
    </span>
  ));
}

const nameText = (store: PairStore, row: number) => {
  const a = store.text('nameA', row);
  const b = store.text('nameB', row);
  return a && b && a !== b ? `${a} ↔ ${b}` : a || b;
};

/** Unpaired tensors have a side, a type and a shape instead of metrics. */
function facts(store: PairStore, row: number) {
  const side = store.text('nameA', row) ? 'A' : 'B';
  return (
    <span class="num t3 clip facts" title={store.text(`dtype${side}`, row)}>
      {shapeText(parseShape(store.text(`shape${side}`, row)))}
    </span>
  );
}

// Every tensor meets every other in one file alone: one name says too little.
export const rowLabel = (store: PairStore, row: number) =>
  state.exploring.value ? nameText(store, row) : labelIn(store, row, state.groupBy.value);

function pairRow(row: number, { code, index, isFocus }: Place) {
  const store = state.store.value;
  const id = store.id(row);
  const status = statusText(STATUS[store.status(row)]);
  const kind = classOfCode[store.status(row)];
  const isOpen = state.openPair.value === id;
  const isPair = store.isPair(row);
  const marked = !isPair && state.chosenA.value === store.text('nameA', row);
  return (
    <div
      class={`prow ${isOpen ? 'open' : ''} ${isFocus ? 'focus' : ''} ${marked ? 'marked' : ''}`}
      role="row"
      id={`row-${index}`}
      aria-level={state.groupBy.value === 'none' ? 1 : 2}
      aria-rowindex={index + 1}
      aria-selected={isOpen}
      data-code={code}
      data-drop="row"
      data-id={id}
    >
      {cells({
        icon: `#g-${kind}`,
        iconKind: kind,
        status,
        label: rowLabel(store, row),
        size: '',
        title: nameText(store, row),
        marks: (
          <>
            {tagsOf(store, row)}
            {flagOf((pair) => pair === id)}
          </>
        ),
        bar: isPair ? bar(store.num('ratio', row), kind) : facts(store, row),
      })}
      <span class="num cosv" role="gridcell">
        <span>
          {isPair
            ? cosine(store.num('cosine', row))
            : store.text('dtypeA', row) || store.text('dtypeB', row)}
        </span>
      </span>
    </div>
  );
}

/** One component for both, so that an element of one kind may become one of the other. */
export const TreeRow = (place: Place) =>
  place.code < 0
    ? groupRow(state.flat.value.groups[-place.code - 1], place)
    : pairRow(place.code, place);
