// From columns to the rows on screen: filtered, sorted, grouped, some groups closed.
import type { Numbers } from '../net/columns';
import type { PairStore } from '../store/pairs';
import { CLASSES, type Class, classOfCode } from '../store/status';
import { type Filter, passes } from './filter';

export type GroupBy = 'layer' | 'name' | 'similarity' | 'none';
export type SortBy = 'order' | 'name' | 'similarity' | 'difference' | 'size';

export interface Group {
  label: string;
  size: number;
  /** Rows of each class, in the order of CLASSES. */
  classes: number[];
  worst: number;
}

export interface Flat {
  /** ≥ 0: a row of the store; < 0: the group −code − 1. */
  codes: Int32Array;
  groups: Group[];
  /** Rows that pass the filter, and of each class those that only the chips hide. */
  shown: number;
  hidden: Record<Class, number>;
}

/** Copies of the columns that rows were last arranged by: what comes later moves no row. */
export type Held = ReadonlyMap<string, Numbers>;

/** The columns by which rows are arranged and that grow while a comparison runs. */
const MOVING: readonly string[] = ['ratio', 'cosine'];

export function hold(store: PairStore): Held {
  const held = new Map<string, Numbers>();
  for (const name of MOVING) {
    const column = store.column(name);
    if (column) held.set(name, column.slice());
  }
  return held;
}

/** Whether a sort or grouping by this column would look different now. */
export function isOld(held: Held, store: PairStore, name: string): boolean {
  const before = held.get(name);
  const now = store.column(name);
  if (!before || !now || before.length !== now.length) return false;
  return now.some((value, row) => !Object.is(value, before[row]));
}

export interface Look {
  held: Held;
  /** One file alone: its tensors come first, then all pairs of them. */
  alone: boolean;
  group: GroupBy;
  sort: SortBy;
  filter: Filter;
  classes: ReadonlySet<Class>;
}

export const ALL_PAIRS = 'all pairs';

const BANDS: [number, string][] = [
  [1, 'identical direction'],
  [0.999999, '≥ 0.999999'],
  [0.9999, '≥ 0.9999'],
  [0.99, '≥ 0.99'],
  [0.9, '≥ 0.9'],
  [Number.NEGATIVE_INFINITY, 'below 0.9'],
];

export function bandOf(cosine: number): string {
  if (Number.isNaN(cosine)) return 'no cosine';
  return BANDS.find(([least]) => cosine >= least)![1];
}

/** A column as rows are arranged by it. */
function arranged(store: PairStore, look: Look, name: string): Numbers | undefined {
  const held = look.held.get(name);
  return held?.length === store.n ? held : store.column(name);
}

const layerLabels: string[] = [];
/** Made once: fifty thousand rows ask for theirs. */
const layerLabel = (layer: number) => {
  layerLabels[layer] ??= `layer ${layer}`;
  return layerLabels[layer];
};

/** The label of the group that holds a row. */
export function labelOf(store: PairStore, row: number, look: Look): string {
  const by = look.group;
  if (by === 'none') return '';
  if (by === 'similarity') return bandOf(arranged(store, look, 'cosine')?.[row] ?? Number.NaN);
  if (look.alone && store.isPair(row)) return ALL_PAIRS;
  const layer = store.num('layer', row);
  if (by === 'layer' && layer >= 0) return layerLabel(layer);
  if (by === 'layer' && store.text('group', row)) return store.text('group', row);
  const name = store.name(row);
  const cut = Math.max(name.lastIndexOf('.'), name.lastIndexOf('/'));
  return cut > 0 ? name.slice(0, cut) : 'no group';
}

/** Numbers that are undefined come last, whatever the direction. */
const down = (x: number, y: number) =>
  Number.isNaN(x) ? (Number.isNaN(y) ? 0 : 1) : Number.isNaN(y) ? -1 : y - x;

function comparer(store: PairStore, look: Look): (x: number, y: number) => number {
  const order = store.column('order');
  const last = (row: number) => (look.alone && store.isPair(row) ? 1 : 0);
  const place = (x: number, y: number) =>
    last(x) - last(y) || (order ? order[x] - order[y] : x - y);
  const byNumber = (name: string, sign: 1 | -1) => {
    const column = arranged(store, look, name);
    return (x: number, y: number) =>
      (column ? down(sign * column[x], sign * column[y]) : 0) || place(x, y);
  };
  switch (look.sort) {
    case 'name':
      return (x, y) => store.name(x).localeCompare(store.name(y), 'en', { numeric: true });
    case 'similarity': {
      // What is not finite on one side has no cosine, and is the least alike of all.
      const ratio = arranged(store, look, 'ratio');
      const isLost = (row: number) => (ratio?.[row] === Number.POSITIVE_INFINITY ? 1 : 0);
      const byCosine = byNumber('cosine', -1);
      return (x, y) => isLost(y) - isLost(x) || byCosine(x, y);
    }
    case 'difference':
      return byNumber('ratio', 1);
    case 'size':
      return byNumber('elements', 1);
    default:
      return place;
  }
}

function gather(store: PairStore, look: Look, hidden: Record<Class, number>): Uint32Array {
  const rows = new Uint32Array(store.n);
  const status = store.column('status');
  let n = 0;
  for (let row = 0; row < store.n; row++) {
    if (!passes(look.filter, store, row)) continue;
    const kind = classOfCode[status ? status[row] : 0];
    if (look.classes.has(kind)) rows[n++] = row;
    else hidden[kind]++;
  }
  return rows.subarray(0, n);
}

function summarise(store: PairStore, label: string, rows: readonly number[]): Group {
  const classes = CLASSES.map(() => 0);
  let worst = Number.NaN;
  for (const row of rows) {
    classes[CLASSES.indexOf(classOfCode[store.status(row)])]++;
    const ratio = store.num('ratio', row);
    if (!(worst >= ratio)) worst = Number.isNaN(ratio) ? worst : ratio;
  }
  return { label, size: rows.length, classes, worst };
}

/** Rows come in the order of execution; to see that they do is far quicker than to sort. */
function sorted(rows: Uint32Array, compare: (x: number, y: number) => number): Uint32Array {
  for (let i = 1; i < rows.length; i++)
    if (compare(rows[i - 1], rows[i]) > 0) return rows.sort(compare);
  return rows;
}

/** All groups with their rows, whether they are closed or not. */
export interface Grouped {
  groups: Group[];
  /** Of each group. Without groups one list, which is of none. */
  rows: ArrayLike<number>[];
  shown: number;
  hidden: Record<Class, number>;
}

export function group(store: PairStore, look: Look): Grouped {
  const hidden = { ok: 0, close: 0, bad: 0, nc: 0, na: 0 };
  const rows = sorted(gather(store, look, hidden), comparer(store, look));
  if (look.group === 'none') return { groups: [], rows: [rows], shown: rows.length, hidden };

  // Groups come in the order of their first row, so a sort of rows is a sort of groups too.
  const members = new Map<string, number[]>();
  for (const row of rows) {
    const label = labelOf(store, row, look);
    const list = members.get(label);
    if (list) list.push(row);
    else members.set(label, [row]);
  }
  const groups = [...members].map(([label, list]) => summarise(store, label, list));
  return { groups, rows: [...members.values()], shown: rows.length, hidden };
}

export function layOut(
  { groups, rows, shown, hidden }: Grouped,
  closed: ReadonlySet<string>,
): Flat {
  const open = (i: number) => i >= groups.length || !closed.has(groups[i].label);
  const count = rows.reduce((sum, list, i) => sum + (open(i) ? list.length : 0), groups.length);
  const codes = new Int32Array(count);
  let n = 0;
  rows.forEach((list, i) => {
    if (i < groups.length) codes[n++] = -i - 1;
    if (!open(i)) return;
    codes.set(list, n);
    n += list.length;
  });
  return { codes, groups, shown, hidden };
}
