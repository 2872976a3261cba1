// What the axes of a pair are, said by hand: compared again with that.
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import * as api from '../net/api';
import { ApiError } from '../net/http';
import type { Pair } from '../net/types';
import { failed, refresh } from '../store/session';
import * as state from '../store/state';

const NAMES = ['i', 'j', 'k', 'l', 'm', 'n', 'o', 'p'];

/** A way to write down two shapes: axes of the same size have the same name. */
export function exampleOf(a: readonly number[], b: readonly number[]): string {
  const rest = a.map((size, axis) => ({ size, name: NAMES[axis] ?? `d${axis}` }));
  const left = rest.map(({ name }) => name).join(' ');
  const right = b.map((size) => {
    const found = rest.findIndex((each) => each.size === size);
    return found < 0 ? '1' : rest.splice(found, 1)[0].name;
  });
  return `${left} -> ${right.join(' ')}`;
}

export function LayoutEditor({ pair, onClose }: { pair: Pair; onClose: () => void }) {
  const box = useRef<HTMLInputElement>(null);
  // At once, so that the very next key is typed here.
  useLayoutEffect(() => box.current!.focus(), []);
  const complaint = useSignal('');
  /** What does not fit is refused here, and nothing is compared again. */
  const apply = async (dims: string | null) => {
    try {
      await api.patchPair(state.session.value!.id, pair.id, state.store.value.run, dims);
      onClose();
      await refresh();
    } catch (error) {
      if (error instanceof ApiError) complaint.value = error.message;
      else failed(error);
    }
  };
  const example = pair.a && pair.b ? exampleOf(pair.a.shape, pair.b.shape) : '';
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        apply(box.current!.value.trim() || null);
      }}
    >
      <input
        ref={box}
        class="ibox"
        aria-label="Axes of A and B"
        placeholder={example}
        spellcheck={false}
        defaultValue={pair.dims ?? example}
        aria-invalid={complaint.value !== ''}
        onInput={() => {
          complaint.value = '';
        }}
        onKeyDown={(event) => {
          if (event.key === 'Escape') onClose();
          event.stopPropagation();
        }}
      />
      {complaint.value && (
        <p class="num bad" role="alert">
          {complaint.value}
        </p>
      )}
      <span class="row2">
        <button type="submit" class="btn sm pri">
          Apply
        </button>
        {pair.dims && (
          <button type="button" class="btn sm" onClick={() => apply(null)}>
            Find out again
          </button>
        )}
        <button type="button" class="btn sm" onClick={onClose}>
          Cancel
        </button>
        <span class="t3 hide-s">
          The axes of A, an arrow, those of B: one name for what belongs together, (h d) for one
          axis that merges two, 1 for an axis of size 1
        </span>
      </span>
    </form>
  );
}
