// From tiles to a frame of the canvas's size: each pixel is the extreme of what it covers.
import type { Tile } from '../net/api';
import type { Window } from '../store/view';

export const TILE = 256;
const TILES_MAX = 16;

export interface Need {
  level: number;
  ty: number;
  tx: number;
}

/**
 * The finest level that needs few tiles for this window. Coarser levels are pooled by the server,
 * what is left is pooled here, so that no single element is ever lost.
 */
export function levelFor(window: Window, width: number, height: number, levels: number): number {
  for (let level = 0; level < levels; level++) {
    const cell = 2 ** level;
    const span = (from: number, to: number) =>
      Math.floor((Math.ceil(to) - 1) / cell / TILE) - Math.floor(from / cell / TILE) + 1;
    const tiles = span(window.x.from, window.x.to) * span(window.y.from, window.y.to);
    const dense =
      (window.x.to - window.x.from) / cell / width > 4 &&
      (window.y.to - window.y.from) / cell / height > 4;
    if (tiles <= TILES_MAX && !dense) return level;
  }
  return Math.max(0, levels - 1);
}

export function tilesFor(window: Window, level: number): Need[] {
  const side = TILE * 2 ** level;
  const needs: Need[] = [];
  for (let ty = Math.floor(window.y.from / side); ty * side < window.y.to; ty++)
    for (let tx = Math.floor(window.x.from / side); tx * side < window.x.to; tx++)
      needs.push({ level, ty, tx });
  return needs;
}

export type Lookup = (need: Need) => Tile | undefined;

/** The larger in size; NaN wins, then infinities. */
const worse = (a: number, b: number) =>
  Number.isNaN(a) ? a : Number.isNaN(b) || Math.abs(b) > Math.abs(a) ? b : a;

/** Cells [from, to) of a level that each pixel covers; at least one. */
function spans(from: number, to: number, pixels: number, cell: number, cells: number): Int32Array {
  const out = new Int32Array(2 * pixels);
  for (let p = 0; p < pixels; p++) {
    const start = from + ((to - from) * p) / pixels;
    const end = from + ((to - from) * (p + 1)) / pixels;
    const first = Math.min(cells - 1, Math.max(0, Math.floor(start / cell)));
    const isFine = end - start <= cell;
    // A pixel smaller than a cell shows the cell under its middle, so cells are equally wide.
    const middle = Math.floor((start + end) / 2 / cell);
    out[2 * p] = isFine ? Math.min(cells - 1, Math.max(0, middle)) : first;
    out[2 * p + 1] = isFine
      ? out[2 * p] + 1
      : Math.min(cells, Math.max(first + 1, Math.ceil(end / cell)));
  }
  return out;
}

export interface FrameSpec {
  window: Window;
  width: number;
  height: number;
  level: number;
  /** The plane in cells of this level. */
  rows: number;
  cols: number;
}

/** Null while a tile is missing: the frame before it stays on screen. */
export function composite(spec: FrameSpec, lookup: Lookup): Float32Array | null {
  const { window, width, height, level, rows, cols } = spec;
  const tiles = new Map<number, Tile>();
  const across = Math.ceil(cols / TILE);
  for (const need of tilesFor(window, level)) {
    const tile = lookup(need);
    if (!tile) return null;
    tiles.set(need.ty * across + need.tx, tile);
  }
  const cell = 2 ** level;
  const xs = spans(window.x.from, window.x.to, width, cell, cols);
  const ys = spans(window.y.from, window.y.to, height, cell, rows);
  const valueAt = (row: number, col: number) => {
    const tile = tiles.get((row >> 8) * across + (col >> 8));
    return tile ? tile.values[(row & 255) * tile.cols + (col & 255)] : 0;
  };
  const frame = new Float32Array(width * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      let found = valueAt(ys[2 * y], xs[2 * x]);
      for (let row = ys[2 * y]; row < ys[2 * y + 1]; row++)
        for (let col = xs[2 * x]; col < xs[2 * x + 1]; col++)
          found = worse(found, valueAt(row, col));
      frame[y * width + x] = found;
    }
  }
  return frame;
}
