// From columns to the rows on screen: filtered, sorted, grouped, some groups closed.
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

export interface Look {
  group: GroupBy;
  sort: SortBy;
  filter: Filter;
  classes: ReadonlySet<Class>;
  closed: ReadonlySet<string>;
}

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

function labelOf(store: PairStore, row: number, by: GroupBy): string {
  if (by === 'none') return '';
  if (by === 'similarity') return bandOf(store.num('cosine', row));
  const layer = store.num('layer', row);
  if (by === 'layer' && layer >= 0) return `layer ${layer}`;
  if (by === 'layer' && store.text('group', row)) return store.text('group', row);
  const name = store.name(row);
  const cut = Math.max(name.lastIndexOf('.'), name.lastIndexOf('/'));
  return cut > 0 ? name.slice(0, cut) : 'no group';
}

/** Numbers that are undefined come last, whatever the direction. */
const down = (x: number, y: number) =>
  Number.isNaN(x) ? (Number.isNaN(y) ? 0 : 1) : Number.isNaN(y) ? -1 : y - x;

function comparer(store: PairStore, by: SortBy): (x: number, y: number) => number {
  const order = store.column('order');
  const place = (x: number, y: number) => (order ? order[x] - order[y] : x - y);
  const byNumber = (name: string, sign: 1 | -1) => {
    const column = store.column(name);
    return (x: number, y: number) =>
      (column ? down(sign * column[x], sign * column[y]) : 0) || place(x, y);
  };
  switch (by) {
    case 'name':
      return (x, y) => store.name(x).localeCompare(store.name(y), 'en', { numeric: true });
    case 'similarity':
      return byNumber('cosine', -1);
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

export function flatten(store: PairStore, look: Look): Flat {
  const hidden = { ok: 0, close: 0, bad: 0, nc: 0, na: 0 };
  const rows = gather(store, look, hidden).sort(comparer(store, look.sort));
  if (look.group === 'none')
    return { codes: Int32Array.from(rows), groups: [], shown: rows.length, hidden };

  // Groups come in the order of their first row, so a sort of rows is a sort of groups too.
  const members = new Map<string, number[]>();
  for (const row of rows) {
    const label = labelOf(store, row, look.group);
    const list = members.get(label);
    if (list) list.push(row);
    else members.set(label, [row]);
  }
  const codes: number[] = [];
  const groups: Group[] = [];
  for (const [label, list] of members) {
    codes.push(-groups.length - 1);
    groups.push(summarise(store, label, list));
    if (!look.closed.has(label)) for (const row of list) codes.push(row);
  }
  return { codes: Int32Array.from(codes), groups, shown: rows.length, hidden };
}
