// A run of flat positions as windows of the last two axes: what one slice request can fetch.

export interface Segment {
  /** The indices before the last two axes. */
  outer: number[];
  y: [number, number];
  x: [number, number];
  /** Where the first value of this window stands in the run; may be negative. */
  start: number;
}

function outerOf(plane: number, sizes: readonly number[]): number[] {
  const at = new Array<number>(sizes.length);
  let rest = plane;
  for (let axis = sizes.length - 1; axis >= 0; axis--) {
    at[axis] = rest % sizes[axis];
    rest = Math.floor(rest / sizes[axis]);
  }
  return at;
}

/** Whole lines where the run covers several, else the part of the line. */
export function segments(shape: readonly number[], from: number, to: number): Segment[] {
  const width = shape.at(-1) ?? 1;
  const height = shape.at(-2) ?? 1;
  const outer = shape.slice(0, -2);
  const found: Segment[] = [];
  let at = from;
  while (at < to) {
    const line = Math.floor(at / width);
    const plane = Math.floor(line / height);
    const x0 = at % width;
    const left = to - at;
    if (x0 > 0 || left < width) {
      const x1 = Math.min(width, x0 + left);
      const y = line % height;
      found.push({ outer: outerOf(plane, outer), y: [y, y + 1], x: [x0, x1], start: at - from });
      at += x1 - x0;
      continue;
    }
    const y0 = line % height;
    const lines = Math.min(height - y0, Math.floor(left / width));
    found.push({
      outer: outerOf(plane, outer),
      y: [y0, y0 + lines],
      x: [0, width],
      start: at - from,
    });
    at += lines * width;
  }
  return found;
}
