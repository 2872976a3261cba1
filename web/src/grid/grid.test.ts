import { expect, test } from 'vitest';
import { edgeColour, lookOf, magnitude, valueText } from './look';
import { segments } from './segments';

const scale = { limit: 4, atol: 1e-3, rtol: 1e-2, digits: 4, isBool: false };

test('fill by sign and size, border by difference', () => {
  const far = lookOf(277.25, 290, -12.75, scale);
  expect([far.border, far.kind, far.text]).toEqual(['far', '', '277.3']);
  expect(far.fill).toContain('--pos');
  expect(lookOf(-1, -1, 0, scale)).toMatchObject({ border: 'near', edge: 'rgb(22 150 128)' });
  expect(lookOf(-1, undefined, undefined, scale).border).toBe('');
});

test('what is not a number is marked by more than colour', () => {
  expect(lookOf(Number.NaN, Number.NaN, Number.NaN, scale)).toMatchObject({
    kind: 'nan',
    border: 'near',
    text: 'nan',
  });
  expect(lookOf(Number.NaN, 1, Number.NaN, scale)).toMatchObject({ kind: 'nan', border: 'far' });
  expect(lookOf(-Infinity, 1, -Infinity, scale)).toMatchObject({
    kind: 'inf',
    text: '▼ -inf',
    border: 'far',
  });
});

test('without tolerance equal is near and anything else far', () => {
  const strict = { ...scale, atol: 0, rtol: 0 };
  expect([lookOf(1, 1, 0, strict).border, lookOf(1, 2, -1, strict).border]).toEqual([
    'near',
    'far',
  ]);
});

test('green to orange', () => {
  expect([edgeColour(0), edgeColour(100)]).toEqual(['rgb(22 150 128)', 'rgb(236 120 20)']);
  expect(magnitude(0, 4)).toBe(0);
  expect(magnitude(1e9, 4)).toBe(1);
  expect(valueText(1, { ...scale, isBool: true })).toBe('true');
});

test('a run inside one line', () => {
  expect(segments([2, 3, 10], 12, 17)).toEqual([{ outer: [0], y: [1, 2], x: [2, 7], start: 0 }]);
});

test('a run over lines and planes covers each position once', () => {
  const shape = [2, 3, 4];
  const parts = segments(shape, 3, 22);
  const seen: number[] = [];
  for (const { outer, y, x, start } of parts) {
    let i = start;
    for (let row = y[0]; row < y[1]; row++)
      for (let col = x[0]; col < x[1]; col++) {
        expect((outer[0] * 3 + row) * 4 + col).toBe(3 + i);
        seen.push(i++);
      }
  }
  expect(seen).toEqual(Array.from({ length: 19 }, (_, i) => i));
});

test('vectors and scalars are lines too', () => {
  expect(segments([7], 2, 5)).toEqual([{ outer: [], y: [0, 1], x: [2, 5], start: 0 }]);
  expect(segments([], 0, 1)).toEqual([{ outer: [], y: [0, 1], x: [0, 1], start: 0 }]);
});
