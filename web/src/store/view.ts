// Which part of the open pair is on screen: the plane, the window into it, the cursor.
//
// Side b has a slice of its own only when the two are unlinked; everything else follows a.
import { computed, signal } from '@preact/signals';
import type { Range } from '../fmt/shape';
import type { Pair } from '../net/types';

export interface Slice {
  shape: readonly number[];
  /** The axes of the plane; −1 where the tensor has too few. */
  y: number;
  x: number;
  /** An index for each axis; those of the plane are the cursor's. */
  at: readonly number[];
}

export interface Window {
  y: Range;
  x: Range;
}

export type ValueView = '1d' | '2d' | 'flat';

export const sliceA = signal<Slice>({ shape: [], y: -1, x: -1, at: [] });
export const sliceB = signal<Slice>({ shape: [], y: -1, x: -1, at: [] });
export const linked = signal(true);
/** The window of the heat maps, in elements of the plane; may have fractions. */
export const zoom = signal<Window>({ y: { from: 0, to: 1 }, x: { from: 0, to: 1 } });
export const valueView = signal<ValueView>('2d');
/** The range of the last axis that 1D lists; the first ten values unless someone asks for more. */
export const rangeA = signal<Range>({ from: 0, to: 10 });
export const rangeB = signal<Range>({ from: 0, to: 10 });
export const activeAxis = signal(0);
export const blinking = signal(false);

/** The element under the pointer, if any: shown before the cursor's. */
export const hover = signal<readonly number[] | null>(null);

export const cursor = computed(() => sliceA.value.at);

export const planeSize = (slice: Slice) => ({
  h: slice.y < 0 ? 1 : slice.shape[slice.y],
  w: slice.x < 0 ? 1 : slice.shape[slice.x],
});

/** As the server wants it: "2,y,x". */
export function atText(slice: Slice): string {
  return slice.at
    .map((index, axis) => (axis === slice.y ? 'y' : axis === slice.x ? 'x' : String(index)))
    .join(',');
}

/** The same without the plane's own indices: equal for all places of one plane. */
export const planeText = computed(() => atText(sliceA.value));

export function startSlice(shape: readonly number[], at?: readonly number[] | null): Slice {
  const rank = shape.length;
  const inside = at?.length === rank && at.every((index, axis) => index < shape[axis]);
  return {
    shape,
    y: rank >= 2 ? rank - 2 : -1,
    x: rank >= 1 ? rank - 1 : -1,
    at: inside ? [...at] : shape.map(() => 0),
  };
}

const sameShape = (a: readonly number[], b: readonly number[]) =>
  a.length === b.length && a.every((size, axis) => size === b[axis]);

export const wholePlane = (slice: Slice): Window => {
  const { h, w } = planeSize(slice);
  return { y: { from: 0, to: Math.max(h, 1) }, x: { from: 0, to: Math.max(w, 1) } };
};

/** The one shape there is to look at: the common one, or that of a tensor by itself. */
export const shapeOf = (pair: Pair | null): number[] | null => {
  if (!pair) return null;
  return pair.shape ?? (pair.a && pair.b ? null : ((pair.a ?? pair.b)?.shape ?? null));
};

/** Whether someone chose where the cursor is; else it goes to the worst element of each pair. */
let isChosen = false;

/** The next pair opens at its worst element again. */
export const forgetPlace = () => {
  isChosen = false;
};

/** A pair has come: keeps slice and zoom where the shape is the same, starts anew where not. */
export function lookAt(pair: Pair, wanted?: readonly number[] | null) {
  const common = shapeOf(pair);
  hover.value = null;
  const shapeA = common ?? pair.a?.shape ?? pair.b?.shape ?? [];
  const shapeB = common ?? pair.b?.shape ?? pair.a?.shape ?? [];
  if (!sameShape(shapeA, sliceA.value.shape)) {
    sliceA.value = startSlice(shapeA, wanted ?? pair.metrics?.maxAbsAt);
    zoom.value = wholePlane(sliceA.value);
    rangeA.value = { from: 0, to: Math.min(10, Math.max(shapeA.at(-1) ?? 1, 1)) };
    activeAxis.value = 0;
    isChosen = Boolean(wanted);
  } else if (wanted) {
    sliceA.value = { ...sliceA.value, at: startSlice(shapeA, wanted).at };
    isChosen = true;
  } else if (!isChosen && pair.metrics?.maxAbsAt) {
    move(pair.metrics.maxAbsAt);
  }
  listAround(sliceA.value);
  if (!common) linked.value = false;
  else if (!sameShape(shapeB, sliceB.value.shape)) linked.value = true;
  if (linked.value) sliceB.value = sliceA.value;
  else if (!sameShape(shapeB, sliceB.value.shape)) sliceB.value = startSlice(shapeB);
  rangeB.value = linked.value ? rangeA.value : clipRange(rangeB.value, shapeB.at(-1) ?? 1);
}

const clipRange = (range: Range, size: number): Range =>
  range.from < size
    ? { from: range.from, to: Math.max(range.from + 1, Math.min(range.to, size)) }
    : { from: 0, to: Math.max(1, Math.min(10, size)) };

/** Moves the cursor, and the window after it when it leaves. */
export function goTo(at: readonly number[]) {
  if (at.length !== sliceA.value.shape.length) return;
  isChosen = true;
  move(at);
}

function move(at: readonly number[]) {
  const slice = sliceA.value;
  sliceA.value = { ...slice, at: [...at] };
  if (linked.value) sliceB.value = sliceA.value;
  hover.value = null;
  zoom.value = follow(zoom.value, sliceA.value);
  listAround(sliceA.value);
}

/** Moves the list of values where the cursor is not in it. */
function listAround({ at, shape }: Slice) {
  const last = at.at(-1);
  const { from, to } = rangeA.value;
  if (last === undefined || (last >= from && last < to)) return;
  const start = Math.max(
    0,
    Math.min(last - Math.floor((to - from) / 2), shape.at(-1)! - to + from),
  );
  setRange({ from: start, to: start + to - from });
}

export function setRange(range: Range) {
  rangeA.value = range;
  if (linked.value) rangeB.value = range;
}

function follow(window: Window, slice: Slice): Window {
  const axis = (range: Range, index: number, size: number): Range => {
    if (index >= range.from && index + 1 <= range.to) return range;
    const length = range.to - range.from;
    const from = Math.max(0, Math.min(index + 0.5 - length / 2, size - length));
    return { from, to: from + length };
  };
  const { h, w } = planeSize(slice);
  return {
    y: slice.y < 0 ? window.y : axis(window.y, slice.at[slice.y], h),
    x: slice.x < 0 ? window.x : axis(window.x, slice.at[slice.x], w),
  };
}

/** Steps the active axis, or any other. */
export function step(axis: number, by: number) {
  const { shape, at } = sliceA.value;
  if (axis >= shape.length) return;
  const next = [...at];
  next[axis] = Math.max(0, Math.min(shape[axis] - 1, at[axis] + by));
  goTo(next);
}

/** Shows the plane of two axes, if the tensor has them. */
export function showPlane(y: number, x: number) {
  const slice = sliceA.value;
  const rank = slice.shape.length;
  if (y === x || y >= rank || x >= rank) return;
  sliceA.value = { ...slice, y, x };
  if (linked.value) sliceB.value = sliceA.value;
  zoom.value = wholePlane(sliceA.value);
}

/** Makes an axis the rows or columns of the plane; the one that was takes its place. */
export function setPlane(axis: number, role: 'y' | 'x') {
  const { y, x } = sliceA.value;
  const next = { ...sliceA.value };
  if (role === 'y') {
    next.y = axis;
    if (x === axis) next.x = y;
  } else {
    next.x = axis;
    if (y === axis) next.y = x;
  }
  sliceA.value = next;
  if (linked.value) sliceB.value = next;
  zoom.value = wholePlane(next);
}
