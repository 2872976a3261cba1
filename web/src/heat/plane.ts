// What the three maps share: the pyramid of the plane, and the domain of each scale.
import { computed, effect, signal } from '@preact/signals';
import { toNumber } from '../fmt/number';
import * as api from '../net/api';
import { isAbort, Latest } from '../net/http';
import type { Pyramid } from '../net/types';
import { logScale } from '../store/prefs';
import { isOutdated } from '../store/session';
import * as state from '../store/state';
import * as view from '../store/view';
import { type Domain, roundUp } from './colour';

export interface Plane {
  session: string;
  pair: number;
  at: string;
  pyramid: Pyramid;
}

/** The plane on screen; the last one stays until the next has come. */
export const plane = signal<Plane | null>(null);
/** There is none to come: the values cannot be had. */
export const noPlane = signal(false);

const latest = new Latest();
/** Raised to ask for the pyramid again. */
const again = signal(0);
const RETRY_MS = 1000;
const OUTDATED_MS = 100;

/** A tile did not come: the values are others now, or the server is busy or gone for a moment. */
export function lost(of: Plane, error: unknown) {
  const wait = isOutdated(error) ? OUTDATED_MS : RETRY_MS;
  setTimeout(() => {
    if (plane.value === of) again.value++;
  }, wait);
}

export function followPlane() {
  let asked = again.peek();
  effect(() => {
    const pair = state.pair.value;
    const session = state.session.value?.id;
    const at = view.planeText.value;
    const slice = view.sliceA.value;
    const shape = view.shapeOf(pair);
    const fits = shape !== null && slice.shape.length === shape.length;
    if (!pair || !session || !fits || shape.some((size) => size === 0)) {
      plane.value = null;
      return;
    }
    const current = plane.peek();
    const isAgain = again.value !== asked;
    asked = again.value;
    const isSame = current?.pair === pair.id && current.at === at;
    if (!isAgain && isSame && current.pyramid.v === pair.v) return;
    const signal = latest.next();
    api
      .pyramid(session, pair, at, signal)
      .then((pyramid) => {
        plane.value = { session, pair: pair.id, at, pyramid };
        noPlane.value = false;
      })
      .catch((error) => {
        if (isAbort(error) || isOutdated(error)) return;
        plane.value = null;
        noPlane.value = true;
      });
  });
}

const LOG_DECADES = 1e-5;

const sizeOf = (...values: number[]) =>
  values.reduce(
    (most, value) => (Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most),
    0,
  );

/** a and b share one range, so that equal colours are equal values. */
export const valueDomain = computed<Domain>(() => {
  const domain = plane.value?.pyramid.domain;
  const ends = [domain?.a, domain?.b].flatMap((each) => (each ? [each] : []));
  const inner = sizeOf(...ends.flatMap((each) => [toNumber(each.p1), toNumber(each.p99)]));
  const outer = sizeOf(...ends.flatMap((each) => [toNumber(each.min), toNumber(each.max)]));
  return { scale: 'value', low: 0, limit: roundUp(inner > 0 ? inner : outer), log: false };
});

export const diffDomain = computed<Domain>(() => {
  const d = plane.value?.pyramid.domain.d;
  const max = d ? sizeOf(toNumber(d.max)) : 0;
  const p99 = d ? sizeOf(toNumber(d.p99)) : 0;
  const limit = roundUp(logScale.value ? max : p99 > 0 ? p99 : max);
  const typical = p99 > 0 ? p99 / 1000 : limit * LOG_DECADES;
  const low = Math.max(limit * 1e-7, Math.min(typical, limit / 100));
  return { scale: 'diff', low: 10 ** Math.floor(Math.log10(low)), limit, log: logScale.value };
});
