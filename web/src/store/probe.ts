// The element that readouts and tooltips show: the one under the pointer, else the cursor's.
import { computed, effect, signal, untracked } from '@preact/signals';
import * as api from '../net/api';
import { isAbort, Latest } from '../net/http';
import type { Element } from '../net/types';
import { isOutdated } from './session';
import * as state from './state';
import * as view from './view';

export const probe = computed(() => view.hover.value ?? view.cursor.value);
export const element = signal<Element | null>(null);

const latest = new Latest();

export const samePlace = (a: readonly number[] | undefined, b: readonly number[]) =>
  a?.length === b.length && b.every((index, axis) => a[axis] === index);

export function followProbe() {
  let last = '';
  effect(() => {
    const at = probe.value;
    const pair = state.pair.value;
    // Values of another pair are not shown for a moment under the name of this one.
    const now = `${pair?.id} ${pair?.v}`;
    if (now !== last) element.value = null;
    last = now;
    const session = untracked(() => state.session.value);
    const shape = view.shapeOf(pair);
    if (!session || !pair || !shape || at.length !== shape.length) return;
    if (shape.some((size) => size === 0)) {
      element.value = null;
      return;
    }
    const signal = latest.next();
    api
      .element(session.id, pair, at, signal)
      .then((found) => {
        element.value = found;
      })
      .catch((error) => {
        if (!isAbort(error) && !isOutdated(error)) element.value = null;
      });
  });
}
