// How a cell looks: fill by sign and size, border by difference, marks for what is no number.
import { sig } from '../fmt/number';

const HUES = [
  [22, 150, 128],
  [150, 165, 60],
  [236, 120, 20],
] as const;

/** Green, olive, orange: from far within tolerance to beyond it. */
export function edgeColour(ratio: number): string {
  const place = Math.max(0, Math.min(1, (Math.log10(Math.max(ratio, 1e-3)) + 0.9) / 1.5));
  const [low, high, part] =
    place < 0.5 ? [HUES[0], HUES[1], place * 2] : [HUES[1], HUES[2], place * 2 - 1];
  return `rgb(${low.map((c, i) => Math.round(c + (high[i] - c) * part)).join(' ')})`;
}

/** 0 … 1 by the logarithm of the size, so that small values are told apart too. */
export const magnitude = (value: number, limit: number) =>
  limit > 0 ? Math.min(1, Math.log10(1 + (9 * Math.abs(value)) / limit)) : 0;

export interface Look {
  text: string;
  kind: '' | 'nan' | 'inf';
  fill: string;
  edge: string;
  /** '': no border to compare with; 'near': within tolerance; 'far': beyond. */
  border: '' | 'near' | 'far';
}

export interface Scale {
  limit: number;
  atol: number;
  rtol: number;
  digits: number;
  isBool: boolean;
}

export function valueText(value: number, scale: Scale): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? '▲ inf' : '▼ -inf';
  if (scale.isBool) return value === 0 ? 'false' : 'true';
  return sig(value, scale.digits);
}

/** `a` is the reference's value there, `d` = b − a; undefined where nothing is compared. */
export function lookOf(
  value: number,
  a: number | undefined,
  d: number | undefined,
  scale: Scale,
): Look {
  const kind = Number.isNaN(value) ? 'nan' : Number.isFinite(value) ? '' : 'inf';
  const share = kind === '' ? 60 * magnitude(value, scale.limit) : 0;
  const fill =
    share > 0
      ? `color-mix(in srgb, var(--${value < 0 ? 'neg' : 'pos'}) ${share.toFixed(1)}%, transparent)`
      : '';
  const look: Look = { text: valueText(value, scale), kind, fill, edge: '', border: '' };
  if (a === undefined || d === undefined) return look;
  const room = scale.atol + scale.rtol * Math.abs(a);
  // Where one side is not finite there is no ratio: equal is near, anything else is far.
  const ratio = Number.isNaN(d)
    ? Number.isNaN(a) && kind === 'nan'
      ? 0
      : Infinity
    : Math.abs(d) / room;
  const exact = d === 0 ? 0 : ratio;
  look.edge = edgeColour(Number.isNaN(exact) ? 0 : exact);
  look.border = exact > 1 ? 'far' : 'near';
  return look;
}
