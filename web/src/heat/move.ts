// Moving the window of the maps: zoom about a point, pan, fit.
import type { Range } from '../fmt/shape';
import * as view from '../store/view';

const CELLS_MIN = 4;

/** A range of another length about a fixed point of it, kept inside 0 … size. */
export function scaled(range: Range, by: number, about: number, size: number): Range {
  const length = range.to - range.from;
  const next = Math.max(Math.min(CELLS_MIN, size), Math.min(size, length * by));
  const from = range.from + about * (length - next);
  return shifted({ from, to: from + next }, 0, size);
}

/** A range moved by a part of its length, kept inside. */
export function shifted(range: Range, part: number, size: number): Range {
  const length = range.to - range.from;
  const from = Math.max(0, Math.min(size - length, range.from + part * length));
  return { from, to: from + length };
}

export function zoomAt(by: number, fx = 0.5, fy = 0.5) {
  const { h, w } = view.planeSize(view.sliceA.value);
  const { y, x } = view.zoom.value;
  view.zoom.value = { y: scaled(y, by, fy, h), x: scaled(x, by, fx, w) };
}

export function pan(dx: number, dy: number) {
  const { h, w } = view.planeSize(view.sliceA.value);
  const { y, x } = view.zoom.value;
  view.zoom.value = { y: shifted(y, dy, h), x: shifted(x, dx, w) };
}

export const fit = () => {
  view.zoom.value = view.wholePlane(view.sliceA.value);
};

/** One element for each pixel of the map, about the cursor. */
export function oneToOne(width: number, height: number) {
  const slice = view.sliceA.value;
  const { h, w } = view.planeSize(slice);
  const about = (index: number, length: number, size: number): Range => {
    const span = Math.min(length, size);
    return shifted({ from: index - span / 2, to: index + span / 2 }, 0, size);
  };
  view.zoom.value = {
    y: about(slice.y < 0 ? 0 : slice.at[slice.y], height, h),
    x: about(slice.x < 0 ? 0 : slice.at[slice.x], width, w),
  };
}
