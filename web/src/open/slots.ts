// The two slots of the open screen: what each side holds, and which mode that makes.
import { computed, signal } from '@preact/signals';
import * as api from '../net/api';
import { ApiError } from '../net/http';
import type { Mode, Source } from '../net/types';
import { enterSession } from '../store/session';
import { type Progress, upload } from './upload';

export interface Item {
  key: number;
  name: string;
  kind: 'path' | 'upload';
  source: Source | null;
  error: string | null;
  progress: Progress | null;
  stop: AbortController | null;
  file: File | null;
}

export type SideName = 'a' | 'b';
export const slots = { a: signal<readonly Item[]>([]), b: signal<readonly Item[]>([]) };
/** What the user asked for; null: found out from what is there. */
export const askedMode = signal<Mode | null>(null);
export const starting = signal(false);
export const startError = signal<string | null>(null);

/** One side alone is explored, two files are compared, more than that is mixed. */
export function modeOf(a: number, b: number): Mode {
  if (b === 0) return a > 1 ? 'mixed' : 'explore';
  return a > 1 || b > 1 ? 'mixed' : 'compare';
}

export const mode = computed<Mode>(() => {
  const [a, b] = [slots.a.value.length, slots.b.value.length];
  return (
    askedMode.value ?? (a + b === 0 ? 'compare' : b === 0 && a === 1 ? 'compare' : modeOf(a, b))
  );
});

const isReady = (items: readonly Item[]) => items.length > 0 && items.every((item) => item.source);

export const canStart = computed(() => {
  const { a, b } = slots;
  if (starting.value || !isReady(a.value)) return false;
  return mode.value === 'explore' ? b.value.length === 0 : isReady(b.value);
});

/** One full slot and one empty: it can be explored by itself. */
export const canExplore = computed(
  () => isReady(slots.a.value) && slots.b.value.length === 0 && !starting.value,
);

let nextKey = 1;

function change(side: SideName, key: number, part: Partial<Item>) {
  slots[side].value = slots[side].value.map((item) =>
    item.key === key ? { ...item, ...part } : item,
  );
}

function add(side: SideName, name: string, kind: Item['kind'], file: File | null): Item {
  const item: Item = {
    key: nextKey++,
    name,
    kind,
    file,
    source: null,
    error: null,
    progress: null,
    stop: null,
  };
  // Where one file belongs, a new one takes its place; in mixed mode they gather.
  const before = mode.value === 'mixed' ? slots[side].value : [];
  slots[side].value = [...before.filter((each) => !each.error), item];
  return item;
}

const reason = (error: unknown) => {
  const text = error instanceof Error ? error.message : String(error);
  const hint = error instanceof ApiError ? error.problem.hint : undefined;
  return hint ? `${text} — ${hint}` : text;
};

export async function addPath(side: SideName, path: string) {
  const item = add(side, path, 'path', null);
  try {
    const source = await api.openPath(path);
    change(side, item.key, { source, name: source.name });
    startIfComplete();
  } catch (error) {
    change(side, item.key, { error: reason(error) });
  }
}

async function send(side: SideName, item: Item) {
  const stop = new AbortController();
  change(side, item.key, { stop, error: null });
  try {
    const source = await upload(item.file!, stop.signal, (progress) =>
      change(side, item.key, { progress }),
    );
    change(side, item.key, { source, progress: null, stop: null });
    startIfComplete();
  } catch (error) {
    if (stop.signal.aborted) change(side, item.key, { stop: null });
    else change(side, item.key, { error: reason(error), progress: null, stop: null });
  }
}

/** Files for one side; several at once make it a mixed session. */
export function addFiles(side: SideName, files: readonly File[]) {
  if (files.length > 1) askedMode.value = 'mixed';
  for (const file of files) send(side, add(side, file.name, 'upload', file));
}

/** Two files dropped between the slots go to A and B. */
export function addAnywhere(files: readonly File[]) {
  if (files.length === 2 && slots.a.value.length + slots.b.value.length === 0) {
    addFiles('a', [files[0]]);
    addFiles('b', [files[1]]);
  } else addFiles(slots.a.value.length === 0 ? 'a' : 'b', files);
}

export const pause = (item: Item) => item.stop?.abort();
export const resume = (side: SideName, item: Item) => send(side, item);

export function remove(side: SideName, item: Item) {
  item.stop?.abort();
  slots[side].value = slots[side].value.filter((each) => each.key !== item.key);
  if (slots.a.value.length <= 1 && slots.b.value.length <= 1) askedMode.value = null;
}

export function swap() {
  const a = slots.a.value;
  slots.a.value = slots.b.value;
  slots.b.value = a;
}

/** Two files are compared as soon as both are there; a mixed session waits to be told. */
function startIfComplete() {
  if (mode.value === 'compare' && canStart.value) start();
  if (askedMode.value === 'explore' && canStart.value) start();
}

export async function start(asked?: Mode) {
  starting.value = true;
  startError.value = null;
  try {
    const ids = (side: SideName) => slots[side].value.map((item) => item.source!.id);
    const made = await api.startSession({ a: ids('a'), b: ids('b'), mode: asked ?? mode.value });
    await enterSession(made.id);
    clear();
  } catch (error) {
    startError.value = reason(error);
  }
  starting.value = false;
}

export function clear() {
  slots.a.value = [];
  slots.b.value = [];
  askedMode.value = null;
  startError.value = null;
}
