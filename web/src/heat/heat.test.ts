import { expect, test } from 'vitest';
import type { Tile } from '../net/api';
import { colourise, INF_INK, NAN_INK, placeOn, roundUp, table } from './colour';
import { composite, levelFor, tilesFor } from './frame';
import { TileCache } from './tiles';

const window = (y0: number, y1: number, x0: number, x1: number) => ({
  y: { from: y0, to: y1 },
  x: { from: x0, to: x1 },
});

test('value scales are centred on zero', () => {
  const domain = { scale: 'value', low: 0, limit: 2, log: false } as const;
  expect([-5, -2, 0, 1, 9].map((v) => placeOn(domain, v))).toEqual([0, 0, 0.5, 0.75, 1]);
});

test('a difference is never drawn as none', () => {
  const domain = { scale: 'diff', low: 1e-4, limit: 1, log: true } as const;
  expect(placeOn(domain, 0)).toBe(0);
  expect(placeOn(domain, 1e-12)).toBe(0.04);
  expect(placeOn(domain, 1e-2)).toBeCloseTo(0.5);
});

test('round ends', () => {
  expect([0.3, 1, 1.2, 4.9, 7, 0, Number.NaN].map(roundUp)).toEqual([0.3, 1, 1.5, 5, 8, 1, 1]);
});

test('NaN and infinities have colours that no scale has', () => {
  const lut = table('value', false);
  const out = new Uint8ClampedArray(12);
  const domain = { scale: 'value', low: 0, limit: 1, log: false } as const;
  colourise(Float32Array.of(Number.NaN, Infinity, 1), 3, lut, domain, out);
  expect([...out.slice(0, 3)]).toEqual(NAN_INK[0]);
  expect([...out.slice(4, 7)]).toEqual(INF_INK[0]);
  expect([...out.slice(8, 11)]).toEqual([...lut.slice(255 * 4, 255 * 4 + 3)]);
});

test('a large plane takes a coarse level with few tiles', () => {
  expect(levelFor(window(0, 512, 0, 256), 300, 168, 3)).toBe(0);
  const level = levelFor(window(0, 100_000, 0, 100_000), 300, 168, 10);
  expect(tilesFor(window(0, 100_000, 0, 100_000), level).length).toBeLessThanOrEqual(16);
});

test('one bad element among thousands survives', () => {
  const values = new Float32Array(256 * 256);
  values[100 * 256 + 201] = -7;
  const tile: Tile = { rows: 256, cols: 256, values, rough: false };
  const spec = {
    window: window(0, 256, 0, 256),
    width: 10,
    height: 10,
    level: 0,
    rows: 256,
    cols: 256,
  };
  const frame = composite(spec, () => tile)!;
  expect(frame[3 * 10 + 7]).toBe(-7);
  expect([...frame].filter((value) => value !== 0)).toEqual([-7]);
});

test('zoomed in, every cell is equally wide; NaN wins', () => {
  const tile: Tile = { rows: 1, cols: 2, values: Float32Array.of(1, Number.NaN), rough: false };
  const spec = { window: window(0, 1, 0, 2), width: 6, height: 1, level: 0, rows: 1, cols: 2 };
  expect([...composite(spec, () => tile)!]).toEqual([1, 1, 1, Number.NaN, Number.NaN, Number.NaN]);
  expect([...composite({ ...spec, width: 1 }, () => tile)!]).toEqual([Number.NaN]);
});

test('a missing tile keeps the old frame', () => {
  const spec = { window: window(0, 1, 0, 2), width: 6, height: 1, level: 0, rows: 1, cols: 2 };
  expect(composite(spec, () => undefined)).toBeNull();
});

test('the cache forgets what was not used for longest', () => {
  const cache = new TileCache(32);
  const tile = () => ({ rows: 1, cols: 4, values: new Float32Array(4), rough: false });
  cache.put('a', tile());
  cache.put('b', tile());
  cache.get('a');
  cache.put('c', tile());
  expect([cache.get('a'), cache.get('b'), cache.get('c')].map(Boolean)).toEqual([
    true,
    false,
    true,
  ]);
});
