// Drawing of the error chart that uPlot has no series for: status marks, layer bands, the flag.
import type uPlot from 'uplot';
import type { Class } from '../store/status';
import { ink } from './Plot';

export interface Point {
  row: number;
  layer: number;
  value: number;
  kind: Class;
}

const px = () => devicePixelRatio || 1;

/** Every other layer is shaded, so that the eye keeps its place. */
export function drawBands(plot: uPlot, points: readonly Point[]) {
  const { ctx, bbox } = plot;
  ctx.fillStyle = ink('sunken');
  let from = 0;
  for (let i = 1; i <= points.length; i++) {
    if (i < points.length && points[i].layer === points[from].layer) continue;
    if (points[from].layer % 2 === 1) {
      const x0 = plot.valToPos(from - 0.5, 'x', true);
      const x1 = plot.valToPos(i - 0.5, 'x', true);
      ctx.fillRect(x0, bbox.top, x1 - x0, bbox.height);
    }
    from = i;
  }
}

function drawMark(ctx: CanvasRenderingContext2D, kind: Class, x: number, y: number, size: number) {
  ctx.beginPath();
  if (kind === 'bad') {
    ctx.moveTo(x, y - 2.8 * size);
    ctx.lineTo(x + 2.6 * size, y + 1.9 * size);
    ctx.lineTo(x - 2.6 * size, y + 1.9 * size);
    ctx.closePath();
    ctx.fill();
  } else if (kind === 'nc') {
    ctx.moveTo(x - 2.2 * size, y - 2.2 * size);
    ctx.lineTo(x + 2.2 * size, y + 2.2 * size);
    ctx.moveTo(x + 2.2 * size, y - 2.2 * size);
    ctx.lineTo(x - 2.2 * size, y + 2.2 * size);
    ctx.stroke();
  } else {
    ctx.arc(x, y, 1.8 * size, 0, 2 * Math.PI);
    ctx.fill();
  }
}

/** What has no value stands on the floor; what is too small or large at the edge. */
export function heightOf(plot: uPlot, value: number): number {
  return heights(plot)(value);
}

/** The same for very many values: what does not change is asked for once. */
function heights(plot: uPlot): (value: number) => number {
  const { top, height } = plot.bbox;
  const floor = top + height - 4 * px();
  const min = plot.scales.y.min ?? 0;
  return (value) => {
    if (Number.isNaN(value) || value <= min) return floor;
    if (value === Number.POSITIVE_INFINITY) return top;
    return Math.max(top, Math.min(floor, plot.valToPos(value, 'y', true)));
  };
}

const DRAWN = ['ok', 'close', 'bad', 'nc'] as const;

export function drawPoints(plot: uPlot, points: readonly Point[]) {
  const { ctx } = plot;
  // A few marks may be larger than hundreds.
  const size = px() * (points.length < 120 ? 1.35 : 1);
  const heightAt = heights(plot);
  const left = plot.valToPos(0, 'x', true);
  const step = plot.valToPos(1, 'x', true) - left;
  // Of marks on one pixel one is seen: a few thousand are drawn, however many pairs there are.
  const marks = new Map<Class, Map<number, [number, number]>>(
    DRAWN.map((kind) => [kind, new Map()]),
  );
  points.forEach((point, i) => {
    const [x, y] = [left + step * i, heightAt(point.value)];
    marks.get(point.kind)?.set(Math.round(x) * 65_536 + Math.round(y), [x, y]);
  });
  ctx.lineWidth = 1.3 * px();
  for (const [kind, places] of marks) {
    const colour = ink(kind);
    ctx.fillStyle = colour;
    ctx.strokeStyle = colour;
    ctx.globalAlpha = kind === 'nc' ? 1 : 0.82;
    for (const [x, y] of places.values()) drawMark(ctx, kind, x, y, size);
  }
  ctx.globalAlpha = 1;
}

/** A line through the worst pair of each layer. */
export function drawRidge(plot: uPlot, points: readonly Point[]) {
  const { ctx } = plot;
  ctx.strokeStyle = ink('text');
  ctx.globalAlpha = 0.5;
  ctx.lineWidth = 1.2 * px();
  ctx.beginPath();
  let best = -1;
  for (let i = 0; i <= points.length; i++) {
    const ends = i === points.length || (best >= 0 && points[i].layer !== points[best].layer);
    if (ends && best >= 0) {
      ctx.lineTo(plot.valToPos(best, 'x', true), heightOf(plot, points[best].value));
      best = -1;
    }
    if (i === points.length || Number.isNaN(points[i].value)) continue;
    if (best < 0 || points[i].value > points[best].value) best = i;
  }
  ctx.stroke();
  ctx.globalAlpha = 1;
}

/** The line at 1×: what is above it exceeds the tolerance. */
export function drawTolerance(plot: uPlot) {
  const { ctx, bbox } = plot;
  const y = plot.valToPos(1, 'y', true);
  ctx.strokeStyle = ink('text-3');
  ctx.lineWidth = px();
  ctx.setLineDash([3 * px(), 3 * px()]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.setLineDash([]);
}

/** Where the heading that lies over the chart ends, in pixels of the canvas. */
function endOfHead(plot: uPlot): number {
  const from = plot.ctx.canvas.getBoundingClientRect().left;
  const parts = plot.root.closest('.chart')?.querySelectorAll('.hd > *') ?? [];
  const ends = Array.from(parts, (part) => part.getBoundingClientRect().right - from);
  return (Math.max(0, ...ends) + 8) * px();
}

/** A line down to the point. Its label stands beside it, or beside the heading where that is. */
export function drawFlag(plot: uPlot, i: number, value: number, text: string) {
  const { ctx, bbox } = plot;
  const x = plot.valToPos(i, 'x', true);
  const y = heightOf(plot, value);
  const accent = ink('accent');
  const tall = 18 * px();
  const top = Math.max(0, bbox.top - 22 * px());
  ctx.font = `600 ${10.5 * px()}px Inter, system-ui, sans-serif`;
  const wide = ctx.measureText(text).width + 14 * px();
  const fits = (at: number) => at + wide <= plot.ctx.canvas.width;
  const clear = Math.max(x, endOfHead(plot));
  const left = fits(clear) ? clear : fits(x) ? x : x - wide;
  ctx.strokeStyle = accent;
  ctx.lineWidth = 1.5 * px();
  ctx.beginPath();
  ctx.moveTo(x, bbox.top + bbox.height);
  if (left > x) {
    ctx.lineTo(x, top + tall);
    ctx.lineTo(left, top + tall);
  } else {
    ctx.lineTo(x, top);
  }
  ctx.stroke();
  ctx.fillStyle = accent;
  ctx.beginPath();
  ctx.roundRect(left, top, wide, tall, left < x ? [3, 0, 0, 3] : [0, 3 * px(), 3 * px(), 0]);
  ctx.fill();
  ctx.fillStyle = ink('accent-fg');
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.fillText(text, left + 7 * px(), top + tall / 2 + px() / 2);
  drawRing(plot, x, y);
}

/** A small flag without a label: another step that makes an error of its own. */
export function drawPennant(plot: uPlot, i: number, value: number) {
  const { ctx, bbox } = plot;
  const x = plot.valToPos(i, 'x', true);
  const top = Math.max(0, bbox.top - 4 * px());
  const accent = ink('accent');
  ctx.strokeStyle = accent;
  ctx.fillStyle = accent;
  ctx.lineWidth = 1.2 * px();
  ctx.beginPath();
  ctx.moveTo(x, bbox.top + bbox.height);
  ctx.lineTo(x, top);
  ctx.stroke();
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x + 8 * px(), top + 3.5 * px());
  ctx.lineTo(x, top + 7 * px());
  ctx.closePath();
  ctx.fill();
  drawRing(plot, x, heightOf(plot, value));
}

export function drawRing(plot: uPlot, x: number, y: number) {
  const { ctx } = plot;
  ctx.fillStyle = ink('surface');
  ctx.strokeStyle = ink('accent');
  ctx.lineWidth = 2 * px();
  ctx.beginPath();
  ctx.arc(x, y, 4.5 * px(), 0, 2 * Math.PI);
  ctx.fill();
  ctx.stroke();
}
