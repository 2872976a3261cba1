import { expect, test } from 'vitest';
import { flatOf, parsePlace, parseRange, parseShape, placeOf } from './shape';
import { stepText } from './steps';

test('flat positions are exact beyond 2⁵³', () => {
  const shape = [3_000_000_000, 4_000_000_001];
  const at = [2_999_999_999, 4_000_000_000];
  expect(flatOf(at, shape)).toBe(12_000_000_002_999_999_999n);
  expect(placeOf(flatOf(at, shape), shape)).toEqual(at);
});

test('a scalar has one place', () => {
  expect(parseShape('')).toEqual([]);
  expect(flatOf([], [])).toBe(0n);
  expect(placeOf(0n, [])).toEqual([]);
});

test.each([
  ['2, 84, 2529', [2, 84, 2529]],
  ['[2,84,2529]', [2, 84, 2529]],
  ['4540897', [2, 84, 2529]],
  ['-1,-1,-1', [3, 511, 4095]],
  ['4,0,0', null],
  ['1,2', null],
  ['8388608', null],
  ['a', null],
])('parsePlace(%s)', (text, at) => {
  expect(parsePlace(text, [4, 512, 4096])).toEqual(at);
});

test.each([
  ['80:92', { from: 80, to: 92 }],
  [':10', { from: 0, to: 10 }],
  ['90:', { from: 90, to: 100 }],
  ['7', { from: 7, to: 8 }],
  ['90:500', { from: 90, to: 100 }],
  ['100:', null],
  ['9:3', null],
  ['', null],
  ['x', null],
])('parseRange(%s)', (text, range) => {
  expect(parseRange(text, 100)).toEqual(range);
});

test('steps in a few words', () => {
  expect(stepText({ op: 'squeeze', axis: 0 })).toBe('squeeze axis 0');
  expect(stepText({ op: 'permute', order: [1, 0, 2] })).toBe('permute [1, 0, 2]');
  expect(stepText({ op: 'select', axis: 2, first: 96, size: 96 })).toBe('part 96:192 of axis 2');
  expect(stepText({ op: 'concat', axis: 1, ranks: 2, copies: 1 })).toBe('concat axis 1 of 2 ranks');
  expect(stepText({ op: 'split', axis: 0, sizes: [2, 3] })).toBe('split axis 0 to [2, 3]');
  expect(stepText({ op: 'flatten' })).toBe('flatten');
});
