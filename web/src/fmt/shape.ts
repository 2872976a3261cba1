// Shapes, places in them, and windows: "2,3" ⇄ [2, 3] ⇄ flat position.

export const parseShape = (text: string): number[] =>
  text === '' ? [] : text.split(',').map(Number);

export const shapeText = (shape: readonly number[]): string => `[${shape.join(', ')}]`;

/** The row-major position of an element; exact beyond 2⁵³. */
export function flatOf(at: readonly number[], shape: readonly number[]): bigint {
  return at.reduce((flat, index, axis) => flat * BigInt(shape[axis]) + BigInt(index), 0n);
}

export function placeOf(flat: bigint, shape: readonly number[]): number[] {
  const at = new Array<number>(shape.length).fill(0);
  let rest = flat;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = BigInt(shape[axis]);
    if (size === 0n) return at;
    at[axis] = Number(rest % size);
    rest /= size;
  }
  return at;
}

export const elementsOf = (shape: readonly number[]): number =>
  shape.reduce((product, size) => product * size, 1);

/** "2, 84, 2529" or "[2,84,2529]" or a flat "4540897"; null when it lies outside. */
export function parsePlace(text: string, shape: readonly number[]): number[] | null {
  const words = text
    .replace(/[[\]()]/g, ' ')
    .trim()
    .split(/[\s,]+/);
  if (words.some((word) => !/^-?\d+$/.test(word))) return null;
  if (words.length === 1 && shape.length !== 1) return parseFlat(words[0], shape);
  if (words.length !== shape.length) return null;
  const at = words.map((word, axis) => {
    const index = Number(word);
    return index < 0 ? index + shape[axis] : index;
  });
  return at.every((index, axis) => index >= 0 && index < shape[axis]) ? at : null;
}

function parseFlat(word: string, shape: readonly number[]): number[] | null {
  const flat = BigInt(word);
  const size = shape.reduce((product, each) => product * BigInt(each), 1n);
  return flat >= 0n && flat < size ? placeOf(flat, shape) : null;
}

export interface Range {
  from: number;
  to: number;
}

/** "80:92", ":10", "80:", "-50:" from the end, or one index; null when it is empty or outside. */
export function parseRange(text: string, size: number): Range | null {
  const found = /^\s*(-?\d+)?\s*(:?)\s*(-?\d+)?\s*$/.exec(text);
  if (!found || (found[1] === undefined && found[2] === '')) return null;
  // As in Python: negative numbers count from the end.
  const place = (word: string) => (Number(word) < 0 ? Number(word) + size : Number(word));
  const from = found[1] === undefined ? 0 : place(found[1]);
  if (from < 0 && found[2] === '') return null;
  const first = Math.max(0, from);
  if (found[2] === '') return first < size ? { from: first, to: first + 1 } : null;
  const to = found[3] === undefined ? size : Math.min(place(found[3]), size);
  return first < to && first < size ? { from: first, to } : null;
}
