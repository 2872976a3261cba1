// Colour scales: a lookup table of 256 colours, and where a value stands on it.

type Rgb = [number, number, number];
const hex = (text: string): Rgb[] =>
  text
    .split(' ')
    .map((word) => [0, 2, 4].map((i) => Number.parseInt(word.slice(i, i + 2), 16)) as Rgb);

// Diverging for a and b, centred on zero; sequential for |Δ|, of steadily changing lightness.
const STOPS = {
  valueLight: hex('0b3c6f 2166ac 5b9bcb abcfe5 f7f7f6 f8c89a ec8f4a cf5b10 7f3304'),
  valueDark: hex('8cc4f5 4a94dc 2a639f 173a5f 14171b 5b3314 a55817 e58434 ffc48a'),
  diffLight: hex('ffffff fdf0e0 fdd9ad fdb06a f07f2e cf5108 8a3203 4a1a02'),
  diffDark: hex('101317 2a1a10 5a2a0c 963f0a d25f14 f68d3f fdc38a fff1df'),
};

export type Scale = 'value' | 'diff';

/** 256 colours as RGBA bytes. */
export function table(scale: Scale, dark: boolean): Uint8Array {
  const stops = STOPS[`${scale}${dark ? 'Dark' : 'Light'}`];
  const out = new Uint8Array(256 * 4);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(place));
    const part = place - low;
    for (let c = 0; c < 3; c++)
      out[4 * i + c] = Math.round(stops[low][c] * (1 - part) + stops[low + 1][c] * part);
    out[4 * i + 3] = 255;
  }
  return out;
}

/** NaN is hatched in these two, ±Inf in the other two: no scale has them. */
export const NAN_INK: [Rgb, Rgb] = [
  [214, 30, 190],
  [120, 8, 106],
];
export const INF_INK: [Rgb, Rgb] = [
  [125, 60, 235],
  [62, 20, 140],
];

export interface Domain {
  scale: Scale;
  /** value: −limit … limit. diff: low … limit. */
  low: number;
  limit: number;
  log: boolean;
}

/** The place of a value on its scale, 0 … 1. */
export function placeOn(domain: Domain, value: number): number {
  if (domain.scale === 'value') {
    if (domain.limit <= 0) return 0.5;
    return clamp(0.5 + value / (2 * domain.limit));
  }
  if (value <= 0 || domain.limit <= 0) return 0;
  if (!domain.log) return clamp(value / domain.limit);
  const span = Math.log(domain.limit / domain.low);
  // What differs at all is never drawn as if it did not.
  return span <= 0 ? 1 : Math.max(0.04, clamp(Math.log(value / domain.low) / span));
}

const clamp = (x: number) => Math.max(0, Math.min(1, x));

/** Round numbers for the ends of a scale: a short number times a power of ten, at least `value`. */
export function roundUp(value: number): number {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const exponent = Math.floor(Math.log10(value));
  const ends = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((step) => Number(`${step}e${exponent}`));
  return ends.find((end) => end >= value * 0.999) ?? ends[9];
}

/** Colours a frame of values into RGBA. The hatch runs one way for +Inf, the other for −Inf. */
export function colourise(
  frame: Float32Array,
  width: number,
  lut: Uint8Array,
  domain: Domain,
  out: Uint8ClampedArray,
) {
  for (let i = 0; i < frame.length; i++) {
    const value = frame[i];
    const o = 4 * i;
    if (Number.isFinite(value)) {
      const k = 4 * Math.round(255 * placeOn(domain, value));
      out[o] = lut[k];
      out[o + 1] = lut[k + 1];
      out[o + 2] = lut[k + 2];
    } else {
      const x = i % width;
      const y = (i - x) / width;
      const pair = Number.isNaN(value) ? NAN_INK : INF_INK;
      const rgb = pair[((value < 0 ? x - y + 4096 : x + y) >> 1) & 1];
      out[o] = rgb[0];
      out[o + 1] = rgb[1];
      out[o + 2] = rgb[2];
    }
    out[o + 3] = 255;
  }
}
