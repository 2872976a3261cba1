// A note on a pair, kept with the session.
import { useEffect, useRef } from 'preact/hooks';
import * as api from '../net/api';
import type { Pair } from '../net/types';
import { reloadPair } from '../store/pair';
import { failed, refresh } from '../store/session';
import * as state from '../store/state';

export function NoteEditor({ pair, onClose }: { pair: Pair; onClose: () => void }) {
  const box = useRef<HTMLTextAreaElement>(null);
  // The attribute is for pages that load; this one is there already.
  useEffect(() => box.current!.focus(), []);
  const run = state.store.value.run;
  const save = async () => {
    try {
      await api.putNote(state.session.value!.id, pair.id, run, box.current!.value);
      reloadPair();
      await refresh();
      state.say('note saved');
      onClose();
    } catch (error) {
      failed(error);
    }
  };
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <textarea
        ref={box}
        aria-label="Note"
        rows={3}
        maxLength={10_000}
        defaultValue={pair.note ?? ''}
        onKeyDown={(event) => {
          if (event.key === 'Escape') onClose();
          if (event.key === 'Enter' && event.ctrlKey) save();
          event.stopPropagation();
        }}
      />
      <span class="row2">
        <button type="submit" class="btn sm pri">
          Save note
        </button>
        <button type="button" class="btn sm" onClick={onClose}>
          Cancel
        </button>
        <span class="t3">Ctrl Enter saves; it is kept with this session</span>
      </span>
    </form>
  );
}
