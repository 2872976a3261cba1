// What the page is looking at. Signals only; who changes them is in the files named after the deed.
import { computed, signal } from '@preact/signals';
import type { Health, Pair, Session } from '../net/types';
import { parseFilter } from '../tree/filter';
import {
  type Flat,
  type GroupBy,
  group,
  type Held,
  hold,
  isOld,
  type Look,
  layOut,
  type SortBy,
} from '../tree/flatten';
import { PairStore } from './pairs';
import { CLASSES, type Class } from './status';

export const health = signal<Health | null>(null);
export const session = signal<Session | null>(null);
/** Until it is known whether there is a session to show, nothing is. */
export const opening = signal(true);
/** One store for each open session; `rowsRev` says that its rows changed. */
export const store = signal(new PairStore());
export const rowsRev = signal(0);

export const groupBy = signal<GroupBy>('layer');
export const sortBy = signal<SortBy>('order');
export const filterText = signal('');
export const classes = signal<ReadonlySet<Class>>(new Set(CLASSES));
export const closed = signal<ReadonlySet<string>>(new Set());

export const filter = computed(() => parseFilter(filterText.value));

export const exploring = computed(() => session.value?.mode === 'explore');

/** The numbers that rows were last arranged by. */
const held = signal<Held>(new Map());
export const arrange = () => {
  held.value = hold(store.value);
};
/** Numbers came that would move rows: shown, and done when it is asked for. */
export const orderChanged = computed(() => {
  rowsRev.value;
  const bySimilarity = sortBy.value === 'similarity' || groupBy.value === 'similarity';
  return (
    (sortBy.value === 'difference' && isOld(held.value, store.value, 'ratio')) ||
    (bySimilarity && isOld(held.value, store.value, 'cosine'))
  );
});

export const look = computed<Look>(() => ({
  held: held.value,
  alone: exploring.value,
  group: groupBy.value,
  sort: sortBy.value,
  filter: filter.value,
  classes: classes.value,
}));

/** Made anew only when rows or their arrangement change: to open a group is quicker. */
export const grouped = computed(() => {
  rowsRev.value;
  return group(store.value, look.value);
});
export const flat = computed<Flat>(() => layOut(grouped.value, closed.value));

/** The pair that is open on the right, by its number. */
export const openPair = signal<number | null>(null);
/** Counts what a person opened: each is a step that Back takes back. */
export const steps = signal(0);
/** The first divergence is to be opened when it is known: until a person opens something else. */
export const awaitsFirst = signal(false);
/** The row of the tree that has the focus: a code of `flat`. */
export const focusCode = signal<number | null>(null);
/** Names of rows chosen for pairing by hand. */
export const chosenA = signal<string | null>(null);
export const chosenB = signal<string | null>(null);

/** The open pair in full; the last one stays until the next has come. */
export const pair = signal<Pair | null>(null);
export const pairBusy = signal(false);
export const pairError = signal<string | null>(null);
/** The finding of the open pair that is applied to A, by its number. */
export const applied = signal<number | null>(null);

/** On a small screen the list lies over the pair, and is there when it is asked for. */
export const drawer = signal(false);

export const connected = signal(true);
export type Dialog =
  | 'palette'
  | 'keys'
  | 'conversion'
  | 'divergences'
  | 'export'
  | 'tolerance'
  | 'matching'
  | 'find'
  | 'index';
export const dialog = signal<Dialog | null>(null);
/** What was last announced, for the live region. */
export const announced = signal('');
/** A passing remark with an optional way out, shown at the top. */
export interface Notice {
  text: string;
  bad?: boolean;
  action?: { label: string; run: () => void };
}
export const notice = signal<Notice | null>(null);

export const say = (text: string) => {
  announced.value = text;
};

let noticeTimer = 0;
export function notify(next: Notice | null, ms = 6000) {
  clearTimeout(noticeTimer);
  notice.value = next;
  if (!next) return;
  noticeTimer = window.setTimeout(() => {
    notice.value = null;
  }, ms);
}
