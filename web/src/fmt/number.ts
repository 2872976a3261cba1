// Numbers as text. Values keep the digits that matter; what is not a number says what it is.
import type { Num } from '../net/types';

export function toNumber(value: Num | undefined): number {
  if (typeof value === 'number') return value;
  if (value === 'inf') return Number.POSITIVE_INFINITY;
  if (value === '-inf') return Number.NEGATIVE_INFINITY;
  return Number.NaN;
}

/** 4 digits unless told otherwise, exponents as 1.2e-7, no trailing zeros. */
export function sig(value: number, digits = 4): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const size = Math.abs(value);
  if (size >= 10 ** Math.max(digits, 5) || size < 1e-3) return exponent(value, digits);
  return Number(value.toPrecision(digits)).toString();
}

function exponent(value: number, digits: number): string {
  const [mantissa, power] = value.toExponential(digits - 1).split('e');
  const short = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa;
  return `${short}e${power.replace('+', '')}`;
}

export const num = (value: Num | undefined, digits = 4): string =>
  value === null || value === undefined ? '–' : sig(toNumber(value), digits);

/** How many times the tolerance: 0.08×, 4.40×, 23.1×, 4120×. */
export function times(ratio: number): string {
  if (Number.isNaN(ratio)) return '–';
  if (!Number.isFinite(ratio)) return '∞×';
  if (ratio >= 1e5) return `${sig(ratio, 2)}×`;
  if (ratio >= 100) return `${ratio.toFixed(0)}×`;
  if (ratio >= 10) return `${ratio.toFixed(1)}×`;
  if (ratio > 0 && ratio < 0.005) return '<0.01×';
  return `${ratio.toFixed(2)}×`;
}

/** The digits of a cosine say how near it is to 1: never rounded up to 1 when it is less. */
export function cosine(value: number): string {
  if (Number.isNaN(value)) return '–';
  const text = value.toFixed(6);
  return text === '1.000000' && value < 1 ? '0.999999' : text;
}

const groups = new Intl.NumberFormat('en-US');
export const count = (n: number): string => groups.format(n);

/** "1 pair", "2,000 pairs". */
export const counted = (n: number, noun: string): string =>
  `${count(n)} ${noun}${n === 1 ? '' : 's'}`;

/** Digits in groups of three, also of integers beyond 2⁵³ that come as text. */
export const digits = (text: string): string => text.replace(/\B(?=(\d{3})+$)/g, ',');

export function bytes(n: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let unit = 0;
  let value = n;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : sig(value, 3)} ${units[unit]}`;
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`;
}

export function percent(part: number, whole: number): string {
  if (whole === 0) return '0 %';
  const share = (100 * part) / whole;
  if (share > 0 && share < 0.001) return '<0.001 %';
  return `${share >= 10 ? share.toFixed(1) : share.toFixed(3)} %`;
}

/** "today 14:02", "yesterday", "12 Nov", "12 Nov 2024". */
export function when(ms: number, now = Date.now()): string {
  const then = new Date(ms);
  const day = (time: number) => Math.floor((time - then.getTimezoneOffset() * 60_000) / 86_400_000);
  const days = day(now) - day(ms);
  if (days === 0)
    return `today ${then.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })}`;
  if (days === 1) return 'yesterday';
  const sameYear = then.getFullYear() === new Date(now).getFullYear();
  const date: Intl.DateTimeFormatOptions = { day: 'numeric', month: 'short' };
  return then.toLocaleDateString('en-GB', sameYear ? date : { ...date, year: 'numeric' });
}

/** The tolerance in words: 1e-3 + 1e-2·|A|. */
export function tolerance(atol: number | null, rtol: number | null): string {
  if (atol === null && rtol === null) return 'by type';
  const parts = [];
  if (atol || !rtol) parts.push(power(atol ?? 0));
  if (rtol) parts.push(`${power(rtol)}·|A|`);
  return parts.join(' + ');
}

const power = (value: number) => {
  const text = value.toExponential();
  return value !== 0 && /^1e/.test(text) && value < 0.1 ? text.replace('+', '') : sig(value, 3);
};
