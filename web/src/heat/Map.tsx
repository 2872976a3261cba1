// One heat map: zoom, pan, crosshair, readout, mini-map. The window is shared by all maps.
import { useSignal, useSignalEffect } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { ink } from '../charts/Plot';
import { isAbort, Latest } from '../net/http';
import { dark } from '../store/prefs';
import { probe } from '../store/probe';
import * as view from '../store/view';
import { elementMenu } from '../ui/menus';
import { type Domain, table } from './colour';
import { composite, type FrameSpec, levelFor, tilesFor } from './frame';
import { pan, zoomAt } from './move';
import { lost, type Plane, plane } from './plane';
import { renderer } from './renderer';
import { cached, fetchTile, tileKey } from './tiles';

type PlaneName = 'a' | 'b' | 'd';

function specOf(node: HTMLCanvasElement, now: Plane): FrameSpec {
  const dpr = window.devicePixelRatio || 1;
  const width = Math.max(1, Math.round(node.clientWidth * dpr));
  const height = Math.max(1, Math.round(node.clientHeight * dpr));
  const { w, h, levels } = now.pyramid;
  const level = levelFor(view.zoom.value, width, height, levels);
  const cell = 2 ** level;
  return {
    window: clip(view.zoom.value, w, h),
    width,
    height,
    level,
    rows: Math.ceil(h / cell),
    cols: Math.ceil(w / cell),
  };
}

const clip = (window: view.Window, w: number, h: number): view.Window => ({
  y: { from: Math.max(0, window.y.from), to: Math.min(h, window.y.to) },
  x: { from: Math.max(0, window.x.from), to: Math.min(w, window.x.to) },
});

const placesOf = (now: Plane, name: PlaneName, spec: FrameSpec) =>
  tilesFor(spec.window, spec.level).map((need) => ({
    ...need,
    plane: name,
    at: now.at,
    v: now.pyramid.v,
  }));

/** Paints when all tiles are there; until then the last frame stays. */
function paint(
  node: HTMLCanvasElement,
  now: Plane,
  name: PlaneName,
  spec: FrameSpec,
  domain: Domain,
) {
  let rough = false;
  const frame = composite(spec, (need) => {
    const place = { ...need, plane: name, at: now.at, v: now.pyramid.v };
    const tile = cached(tileKey(now.session, now.pair, place));
    rough ||= tile?.rough ?? false;
    return tile;
  });
  if (!frame) return;
  node.width = spec.width;
  node.height = spec.height;
  const { width, height } = spec;
  const lut = table(domain.scale, dark.value);
  renderer().paint(node.getContext('2d')!, { frame, width, height, lut, domain });
  node.dataset.level = String(spec.level);
  node.parentElement!.classList.toggle('rough', rough);
}

function drawCross(node: HTMLCanvasElement) {
  const dpr = window.devicePixelRatio || 1;
  node.width = Math.round(node.clientWidth * dpr);
  node.height = Math.round(node.clientHeight * dpr);
  const ctx = node.getContext('2d')!;
  const { y, x } = view.zoom.value;
  const slice = view.sliceA.value;
  const at = probe.value;
  const place = (index: number, from: number, to: number, size: number) =>
    ((index + 0.5 - from) / (to - from)) * size;
  const px = Math.round(place(slice.x < 0 ? 0 : at[slice.x], x.from, x.to, node.width)) + 0.5;
  const py = Math.round(place(slice.y < 0 ? 0 : at[slice.y], y.from, y.to, node.height)) + 0.5;
  const gap = 6 * dpr;
  ctx.strokeStyle = ink('accent');
  ctx.globalAlpha = 0.75;
  ctx.lineWidth = dpr;
  ctx.beginPath();
  for (const [x0, y0, x1, y1] of [
    [px, 0, px, py - gap],
    [px, py + gap, px, node.height],
    [0, py, px - gap, py],
    [px + gap, py, node.width, py],
  ]) {
    ctx.moveTo(x0, y0);
    ctx.lineTo(x1, y1);
  }
  ctx.rect(px - gap, py - gap, 2 * gap, 2 * gap);
  ctx.stroke();
}

/** The element under a point of the map. */
function elementAt(node: HTMLElement, clientX: number, clientY: number): number[] | null {
  const box = node.getBoundingClientRect();
  const slice = view.sliceA.value;
  const { y, x } = view.zoom.value;
  const index = (part: number, from: number, to: number, size: number) =>
    Math.max(0, Math.min(size - 1, Math.floor(from + part * (to - from))));
  const at = [...slice.at];
  const { h, w } = view.planeSize(slice);
  if (slice.y >= 0) at[slice.y] = index((clientY - box.top) / box.height, y.from, y.to, h);
  if (slice.x >= 0) at[slice.x] = index((clientX - box.left) / box.width, x.from, x.to, w);
  return at;
}

interface Press {
  x: number;
  y: number;
  moved: boolean;
}

function usePointer() {
  const press = useRef<Press | null>(null);
  return {
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0) return;
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
      press.current = { x: event.clientX, y: event.clientY, moved: false };
    },
    onPointerMove: (event: PointerEvent) => {
      const node = event.currentTarget as HTMLElement;
      const start = press.current;
      if (!start) {
        view.hover.value = elementAt(node, event.clientX, event.clientY);
        return;
      }
      const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
      if (!start.moved && Math.hypot(dx, dy) < 4) return;
      press.current = { x: event.clientX, y: event.clientY, moved: true };
      pan(-dx / node.clientWidth, -dy / node.clientHeight);
    },
    onPointerUp: (event: PointerEvent) => {
      const at = elementAt(event.currentTarget as HTMLElement, event.clientX, event.clientY);
      if (press.current && !press.current.moved && at) view.goTo(at);
      press.current = null;
    },
    onPointerLeave: () => {
      view.hover.value = null;
    },
    onContextMenu: (event: MouseEvent) => {
      const node = event.currentTarget as HTMLElement;
      const isPointed = event.clientX !== 0 || event.clientY !== 0;
      const at = isPointed && elementAt(node, event.clientX, event.clientY);
      elementMenu(event, at || view.cursor.value);
    },
  };
}

interface MapProps {
  name: PlaneName;
  label: string;
  domain: Domain;
  /** Painted instead while B is held. */
  blinkTo?: PlaneName;
  children?: ComponentChildren;
}

export function HeatMap({ name, label, domain, blinkTo, children }: MapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const cross = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const size = useSignal(0);
  const requests = useRef(new Latest());
  const pointer = usePointer();

  const draw = () => {
    const now = plane.value;
    const node = canvas.current;
    size.value;
    dark.value;
    const shown = view.blinking.value && blinkTo ? blinkTo : name;
    if (!now || !node || node.clientWidth === 0) return;
    const spec = specOf(node, now);
    const signal = requests.current.next();
    paint(node, now, shown, spec, domain);
    const needs = [...placesOf(now, shown, spec), ...(blinkTo ? placesOf(now, blinkTo, spec) : [])];
    const missing = needs.filter(
      (place) => cached(tileKey(now.session, now.pair, place))?.rough !== false,
    );
    if (missing.length === 0) return;
    const repaint = () => paint(node, now, shown, spec, domain);
    Promise.all(missing.map((place) => fetchTile(now.session, now.pair, place, signal, repaint)))
      .then(repaint)
      .catch((error) => {
        if (!isAbort(error)) lost(now, error);
      });
  };
  useSignalEffect(draw);
  useEffect(draw, [domain.limit, domain.low, domain.log]);
  useSignalEffect(() => {
    size.value;
    dark.value;
    if (cross.current) drawCross(cross.current);
  });
  useEffect(() => {
    const node = box.current!;
    const watch = new ResizeObserver(() => {
      size.value++;
    });
    watch.observe(node);
    // Not passive: the wheel zooms the map and must not scroll the page.
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const at = node.getBoundingClientRect();
      const fx = (event.clientX - at.left) / at.width;
      const fy = (event.clientY - at.top) / at.height;
      if (event.shiftKey) pan(event.deltaY / 800, 0);
      else zoomAt(Math.exp(event.deltaY / 400), fx, fy);
    };
    node.addEventListener('wheel', wheel, { passive: false });
    return () => {
      watch.disconnect();
      node.removeEventListener('wheel', wheel);
    };
  }, []);
  return (
    <div
      class="hm"
      ref={box}
      role="application"
      aria-label={label}
      tabIndex={0}
      data-heat={name}
      {...pointer}
    >
      <canvas ref={canvas} />
      <canvas ref={cross} class="ink" />
      {children}
    </div>
  );
}
