// Feeds the machine from Pointer Events, captured by the list so that rows may come and go.
import { signal } from '@preact/signals';
import { perform } from '../store/deeds';
import { say, store } from '../store/state';
import { type Drag, deedOf, dragText, type Item, type Target } from './machine';

export const drag = signal<Drag | null>(null);
export const ghost = signal<{ x: number; y: number } | null>(null);

const FAR_ENOUGH_PX = 5;
const EDGE_PX = 28;

interface Start {
  item: Item;
  x: number;
  y: number;
}

let start: Start | null = null;
let scroller: number | undefined;

export function pickUp(item: Item, by: Drag['by'] = 'keyboard') {
  drag.value = { item, over: null, by };
  say(dragText(drag.value));
}

export function moveOver(over: Target | null) {
  const now = drag.value;
  if (!now) return;
  drag.value = { ...now, over };
  if (now.by === 'keyboard') say(dragText(drag.value));
}

export function drop() {
  const now = drag.value;
  cancel();
  const deed = now ? deedOf(now) : null;
  if (!deed) return;
  say(dragText(now!));
  perform(deed);
}

export function cancel() {
  drag.value = null;
  ghost.value = null;
  start = null;
  clearInterval(scroller);
}

/** Reads the target from data attributes of the element under the pointer. */
function targetAt(x: number, y: number): Target | null {
  const found = document.elementFromPoint(x, y)?.closest<HTMLElement>('[data-drop]');
  if (!found) return null;
  const { drop: kind, side, name = '' } = found.dataset;
  if (kind === 'tensor') return { kind, side: side === 'a' ? 'a' : 'b', name };
  const box = found.getBoundingClientRect();
  const id = Number(found.dataset.id);
  const row = store.value.row(id);
  const [a, b] = [store.value.text('nameA', row), store.value.text('nameB', row)];
  return { kind: 'row', id, after: y > box.top + box.height / 2, a, b };
}

function scrollNearEdge(list: Element | null, y: number) {
  clearInterval(scroller);
  if (!list) return;
  const box = list.getBoundingClientRect();
  const by = y < box.top + EDGE_PX ? -12 : y > box.bottom - EDGE_PX ? 12 : 0;
  if (by !== 0) scroller = window.setInterval(() => list.scrollBy(0, by), 16);
}

export function pointerDown(event: PointerEvent, item: Item) {
  if (event.button === 0) start = { item, x: event.clientX, y: event.clientY };
}

export function pointerMove(event: PointerEvent) {
  if (!start) return;
  const far = Math.hypot(event.clientX - start.x, event.clientY - start.y) >= FAR_ENOUGH_PX;
  if (!drag.value && !far) return;
  if (!drag.value) {
    pickUp(start.item, 'pointer');
    document.body.setPointerCapture?.(event.pointerId);
  }
  ghost.value = { x: event.clientX, y: event.clientY };
  moveOver(targetAt(event.clientX, event.clientY));
  scrollNearEdge(document.querySelector('.rows'), event.clientY);
}

export function pointerUp() {
  if (drag.value?.by === 'pointer') drop();
  else start = null;
}

/** Listens on the window: the element that was pressed may be unmounted while it is dragged. */
export function listen() {
  window.addEventListener('pointermove', pointerMove);
  window.addEventListener('pointerup', pointerUp);
  window.addEventListener('pointercancel', cancel);
}
