// Other layout steps for a pair, as the JSON that the report has; or back to what was found.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import * as api from '../net/api';
import type { Pair, Step } from '../net/types';
import { reloadPair } from '../store/pair';
import { follow, refresh } from '../store/session';
import * as state from '../store/state';
import { SideMark } from '../ui/parts';

const lines = (steps: Step[]) => steps.map((step) => JSON.stringify(step)).join('\n');
const parse = (text: string): Step[] =>
  text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line));

export function TransformEditor({ pair, onClose }: { pair: Pair; onClose: () => void }) {
  const a = useRef<HTMLTextAreaElement>(null);
  const b = useRef<HTMLTextAreaElement>(null);
  const error = useSignal('');
  const send = async (reset: boolean) => {
    try {
      const steps = reset ? null : { a: parse(a.current!.value), b: parse(b.current!.value) };
      await api.patchPair(state.session.value!.id, pair.id, steps);
      await refresh();
      if (state.session.value) follow(state.session.value);
      reloadPair();
      onClose();
    } catch (problem) {
      error.value = problem instanceof Error ? problem.message : String(problem);
    }
  };
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        send(false);
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onClose();
        event.stopPropagation();
      }}
    >
      <div class="two">
        {(['a', 'b'] as const).map((side) => (
          <label key={side}>
            <span class="row2">
              <SideMark side={side} small />
              steps from [{pair[side]!.shape.join(', ')}], one JSON object a line
            </span>
            <textarea
              ref={side === 'a' ? a : b}
              class="m"
              rows={3}
              spellcheck={false}
              placeholder={'{"op": "permute", "order": [1, 0, 2]}'}
              defaultValue={lines(pair.transforms[side])}
            />
          </label>
        ))}
      </div>
      <span class="row2">
        <button type="submit" class="btn sm pri">
          Compare so
        </button>
        <button type="button" class="btn sm" onClick={() => send(true)}>
          As found by itself
        </button>
        <button type="button" class="btn sm" onClick={onClose}>
          Cancel
        </button>
        {error.value && <span class="num bad">{error.value}</span>}
      </span>
    </form>
  );
}
