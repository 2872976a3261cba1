// Where the value grids stand; they follow the cursor when it leaves them.
import { computed, signal } from '@preact/signals';
import { toNumber } from '../fmt/number';
import { digits } from '../store/prefs';
import * as state from '../store/state';
import type { Scale } from './look';

export const top = signal(0);
export const left = signal(0);
export const flatFrom = signal(0);

export const ROW_PX = 21;
/** Wide enough for a sign, "0.00" and all digits; what is longer is set smaller. */
export const lettersOf = (shown: number) => shown + 5;
export const cellPx = () => Math.round(6.3 * lettersOf(digits.value) + 8);
export const HEAD_PX = 20;

/** The first index of a window that holds `index`, moved as little as possible. */
export function keepInside(first: number, count: number, index: number, size: number): number {
  const most = Math.max(0, size - count);
  if (index < first) return Math.min(most, index);
  if (index >= first + count) return Math.min(most, index - count + 1);
  return Math.min(first, most);
}

/** Around the index, for jumps from afar. */
export const centred = (index: number, count: number, size: number) =>
  Math.max(0, Math.min(Math.max(0, size - count), index - Math.floor(count / 2)));

/** What all cells of a pair share. */
export const scale = computed<Scale>(() => {
  const pair = state.pair.value;
  const size = (side: 'a' | 'b') => {
    const stats = pair?.[side]?.stats;
    const spread = toNumber(stats?.std ?? null);
    const ends = Math.max(
      Math.abs(toNumber(stats?.min ?? null)),
      Math.abs(toNumber(stats?.max ?? null)),
    );
    return Number.isFinite(spread) && spread > 0 ? Math.min(ends || spread, 6 * spread) : ends;
  };
  const limit = Math.max(size('a') || 0, size('b') || 0);
  return {
    limit: Number.isFinite(limit) ? limit : 1,
    atol: toNumber(pair?.metrics?.atol ?? null) || 0,
    rtol: toNumber(pair?.metrics?.rtol ?? null) || 0,
    digits: digits.value,
    isBool: pair?.a?.dtype === 'bool' && (pair.b === null || pair.b.dtype === 'bool'),
  };
});
