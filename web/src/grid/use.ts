// Hooks of the grids: the size of a box, and values that stay until the next have come.
import { useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { isAbort, Latest } from '../net/http';
import { isOutdated } from '../store/session';
import * as state from '../store/state';
import type { Asked } from './fetch';

export function useBox(): [RefObject<HTMLDivElement | null>, { width: number; height: number }] {
  const ref = useRef<HTMLDivElement>(null);
  const size = useSignal({ width: 0, height: 0 });
  useEffect(() => {
    const node = ref.current!;
    const watch = new ResizeObserver(() => {
      size.value = { width: node.clientWidth, height: node.clientHeight };
    });
    watch.observe(node);
    return () => watch.disconnect();
  }, []);
  return [ref, size.value];
}

export interface Fetched<T> {
  value: T | null;
  /** It is of another key: what was asked for last is on its way. */
  isOld: boolean;
}

/** Fetches when `key` changes; what was superseded is aborted, what is on screen stays. */
export function useFetched<T>(key: string, fetch: (asked: Asked) => Promise<T>): Fetched<T> {
  const got = useSignal<{ key: string; value: T | null }>({ key: '', value: null });
  const latest = useRef(new Latest());
  useEffect(() => {
    const session = state.session.value;
    const pair = state.pair.value;
    if (!key || !session || !pair) return;
    const signal = latest.current.next();
    fetch({ session: session.id, pair, signal })
      .then((values) => {
        if (!signal.aborted) got.value = { key, value: values };
      })
      .catch((error) => {
        if (!isAbort(error) && !isOutdated(error)) got.value = { key, value: null };
      });
  }, [key]);
  useEffect(() => () => latest.current.stop(), []);
  return { value: got.value.value, isOld: got.value.key !== key };
}
