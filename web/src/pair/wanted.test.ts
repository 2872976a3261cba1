import { expect, test } from 'vitest';
import { parseWanted } from './wanted';

test.each([
  ['nan', { in: 'a', op: 'nan' }],
  ['b: inf', { in: 'b', op: 'inf' }],
  ['0.5', { in: 'a', op: 'eq', lo: 0.5 }],
  ['-1e-3..2', { in: 'a', op: 'range', lo: -1e-3, hi: 2 }],
  ['4:5', { in: 'a', op: 'range', lo: 4, hi: 5 }],
  ['4.0..4.1', { in: 'a', op: 'range', lo: 4, hi: 4.1 }],
  ['4..5', { in: 'a', op: 'range', lo: 4, hi: 5 }],
  ['b: 4:5', { in: 'b', op: 'range', lo: 4, hi: 5 }],
  ['d: >1e-3', { in: 'd', op: 'range', lo: 1e-3 }],
  ['Δ:<=2', { in: 'd', op: 'range', hi: 2 }],
  ['tol', { in: 'tol' }],
  ['what', null],
  ['', null],
])('parseWanted(%s)', (text, wanted) => {
  expect(parseWanted(text)).toEqual(wanted);
});
