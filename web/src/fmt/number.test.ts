import { expect, test } from 'vitest';
import {
  bytes,
  cosine,
  counted,
  digits,
  duration,
  num,
  percent,
  sig,
  times,
  tolerance,
  when,
} from './number';

test('sig keeps the digits that matter', () => {
  expect([290, 277.25, -0.04297, 0.005127, 12.75].map((x) => sig(x))).toEqual([
    '290',
    '277.3',
    '-0.04297',
    '0.005127',
    '12.75',
  ]);
  expect([1.25e-7, 123456789, 0, -0, Number.NaN, -Infinity].map((x) => sig(x))).toEqual([
    '1.25e-7',
    '1.235e8',
    '0',
    '-0',
    'nan',
    '-inf',
  ]);
});

test('what is not known is a dash, what is not a number says so', () => {
  expect([num(null), num('nan'), num('-inf'), num(0.5)]).toEqual(['–', 'nan', '-inf', '0.5']);
});

test('times', () => {
  expect([0, 0.001, 0.08, 4.4, 23.14, 4120.4, 2.5e7, Number.NaN].map(times)).toEqual([
    '0.00×',
    '<0.01×',
    '0.08×',
    '4.40×',
    '23.1×',
    '4120×',
    '2.5e7×',
    '–',
  ]);
});

test('a cosine is never rounded up to 1', () => {
  expect([1, 0.99999999, 0.99975, Number.NaN].map(cosine)).toEqual([
    '1.000000',
    '0.999999',
    '0.999750',
    '–',
  ]);
});

test('sizes, times and shares', () => {
  expect([999, 31_900_000_000].map(bytes)).toEqual(['999 B', '31.9 GB']);
  expect([41, 9800, 29_000, 200_000].map(duration)).toEqual([
    '41 ms',
    '9.8 s',
    '29 s',
    '3 min 20 s',
  ]);
  expect([percent(0, 0), percent(58649, 8388608), percent(1, 1e9)]).toEqual([
    '0 %',
    '0.699 %',
    '<0.001 %',
  ]);
  expect(digits('4540897')).toBe('4,540,897');
});

test('numbers agree with nouns', () => {
  expect([0, 1, 2000].map((n) => counted(n, 'pair'))).toEqual(['0 pairs', '1 pair', '2,000 pairs']);
});

test('tolerances read as they are meant', () => {
  expect(tolerance(1e-3, 1e-2)).toBe('1e-3 + 1e-2·|A|');
  expect(tolerance(1e-5, 0)).toBe('1e-5');
  expect(tolerance(null, null)).toBe('by type');
  expect(tolerance(0, 0.016)).toBe('0.016·|A|');
});

test('when', () => {
  const now = Date.UTC(2026, 10, 15, 12);
  expect(when(now - 86_400_000, now)).toBe('yesterday');
  expect(when(Date.UTC(2026, 10, 3, 12), now)).toBe('3 Nov');
  expect(when(Date.UTC(2024, 10, 3, 12), now)).toBe('3 Nov 2024');
});
