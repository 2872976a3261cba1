// The URL carries the view: #s=SESSION&p=20&at=2,84,2529&plane=1,2&z=0:192,2400:2688&v=2d…
import { batch, effect, signal } from '@preact/signals';
import * as state from './state';
import { CLASSES, type Class } from './status';
import * as view from './view';

export interface Place {
  session: string | null;
  pair: number | null;
  at: number[] | null;
  /** The axes of the plane, rows and columns; null: the last two. */
  plane: [number, number] | null;
  /** The finding that is applied to A. */
  applied: number | null;
}

const GROUPS = ['layer', 'name', 'similarity', 'none'] as const;
const SORTS = ['order', 'name', 'similarity', 'difference', 'size'] as const;
const VIEWS = ['1d', '2d', 'flat'] as const;

const pick = <T extends string>(list: readonly T[], word: string | null): T | null =>
  list.find((each) => each === word) ?? null;

/** "2,84,2529" */
const numbers = (text: string | null): number[] | null =>
  text === null || !/^\d+(,\d+)*$/.test(text) ? null : text.split(',').map(Number);

export function readHash(hash: string): Place {
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  batch(() => {
    state.groupBy.value = pick(GROUPS, fields.get('g')) ?? 'layer';
    state.sortBy.value = pick(SORTS, fields.get('o')) ?? 'order';
    state.filterText.value = fields.get('q') ?? '';
    view.valueView.value = pick(VIEWS, fields.get('v')) ?? '2d';
    const shown = fields.get('c');
    state.classes.value = new Set(
      shown === null ? CLASSES : CLASSES.filter((each) => shown.split(',').includes(each)),
    );
  });
  const plane = numbers(fields.get('plane'));
  const pair = fields.get('p');
  const applied = fields.get('f');
  return {
    session: fields.get('s'),
    pair: pair === null ? null : Number(pair),
    at: numbers(fields.get('at')),
    plane: plane?.length === 2 ? [plane[0], plane[1]] : null,
    applied: applied === null || !/^\d+$/.test(applied) ? null : Number(applied),
  };
}

/** The window of the heat maps, when the URL has one that fits. */
export function readZoom(hash: string): view.Window | null {
  const words = new URLSearchParams(hash.replace(/^#/, '')).get('z')?.match(/\d+(\.\d+)?/g);
  if (words?.length !== 4) return null;
  const [y0, y1, x0, x1] = words.map(Number);
  return { y: { from: y0, to: y1 }, x: { from: x0, to: x1 } };
}

const short = (value: number) => String(Math.round(value * 100) / 100);

/** The open pair has come: cursor and window are its own, not those of the one before. */
const isSettled = () =>
  !state.pairBusy.value && (state.pair.value?.id ?? null) === state.openPair.value;

function writePlace(fields: URLSearchParams) {
  const slice = view.sliceA.value;
  if (slice.at.length > 0) fields.set('at', slice.at.join(','));
  const rank = slice.shape.length;
  if (rank > 2 && (slice.y !== rank - 2 || slice.x !== rank - 1))
    fields.set('plane', `${slice.y},${slice.x}`);
  if (state.applied.value !== null) fields.set('f', String(state.applied.value));
  const { y, x } = view.zoom.value;
  const { h, w } = view.planeSize(slice);
  if (y.from > 0 || x.from > 0 || y.to < h || x.to < w)
    fields.set('z', [y.from, y.to, x.from, x.to].map(short).join(','));
}

function hashOf(): string {
  const session = state.session.value;
  if (!session) return '';
  const fields = new URLSearchParams({ s: session.id });
  if (state.openPair.value !== null) fields.set('p', String(state.openPair.value));
  if (isSettled()) writePlace(fields);
  if (view.valueView.value !== '2d') fields.set('v', view.valueView.value);
  if (state.groupBy.value !== 'layer') fields.set('g', state.groupBy.value);
  if (state.sortBy.value !== 'order') fields.set('o', state.sortBy.value);
  if (state.filterText.value) fields.set('q', state.filterText.value);
  const shown: Class[] = CLASSES.filter((each) => state.classes.value.has(each));
  if (shown.length < CLASSES.length) fields.set('c', shown.join(','));
  return `#${fields.toString().replaceAll('%2C', ',')}`;
}

function isSamePlace(one: string, other: string): boolean {
  const [x, y] = [one, other].map((hash) => new URLSearchParams(hash.slice(1)));
  return x.get('s') === y.get('s') && x.get('p') === y.get('p');
}

/** A slider that is dragged is written once, when it rests: browsers refuse too many writes. */
const REST_MS = 120;

/**
 * Writes the view into the address. Each entry of the history is about one pair: a pair that a
 * person opens is another entry, one that the page opens by itself is not, and an entry is written
 * to its end before the next one begins. `go` shows what an address says: that of the page now,
 * then those of Back and Forward. Ends when the first is on screen.
 */
export function keepUrl(go: (hash: string) => Promise<void>): Promise<void> {
  /** Addresses on their way to the screen; until then they know more than the page. */
  const arriving = signal(0);
  let stepsSeen = state.steps.value;
  /** What the entry of the moment is still to say. */
  let due: string | null = null;
  let timer = 0;
  const write = (how: 'pushState' | 'replaceState', hash: string) => {
    clearTimeout(timer);
    due = null;
    if (hash !== location.hash) history[how](null, '', hash || location.pathname);
  };
  const writeDue = () => {
    if (due !== null) write('replaceState', due);
  };
  const arrive = async () => {
    arriving.value++;
    await go(location.hash);
    arriving.value--;
  };
  const first = arrive();
  effect(() => {
    const hash = hashOf();
    const isStep = state.steps.value !== stepsSeen;
    stepsSeen = state.steps.value;
    if (arriving.value > 0) return;
    if (isStep) {
      writeDue();
      write('pushState', hash);
    } else if (!isSamePlace(hash, location.hash)) write('replaceState', hash);
    else if (isSettled()) {
      due = hash;
      clearTimeout(timer);
      timer = window.setTimeout(writeDue, REST_MS);
    }
  });
  window.addEventListener('popstate', () => {
    // It was about the entry that was left.
    clearTimeout(timer);
    due = null;
    arrive();
  });
  return first;
}
