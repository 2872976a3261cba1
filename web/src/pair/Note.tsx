// A note on a pair, kept with the session.
import { useLayoutEffect, useRef } from 'preact/hooks';
import * as api from '../net/api';
import type { Pair } from '../net/types';
import { reloadPair } from '../store/pair';
import { failed, refresh } from '../store/session';
import * as state from '../store/state';

/** What was typed and neither saved nor cancelled, by the names of the pair. */
const drafts = new Map<string, string>();

export function NoteEditor({ pair, onClose }: { pair: Pair; onClose: () => void }) {
  const name = `${state.session.value!.id} ${pair.a?.name} ${pair.b?.name}`;
  const box = useRef<HTMLTextAreaElement>(null);
  // At once, so that the very next key is typed here.
  useLayoutEffect(() => box.current!.focus(), []);
  const run = state.store.value.run;
  const close = () => {
    drafts.delete(name);
    onClose();
  };
  const save = async () => {
    try {
      await api.putNote(state.session.value!.id, pair.id, run, box.current!.value);
      reloadPair();
      await refresh();
      state.say('note saved');
      close();
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
        defaultValue={drafts.get(name) ?? pair.note ?? ''}
        onInput={(event) => drafts.set(name, event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') close();
          if (event.key === 'Enter' && event.ctrlKey) save();
          event.stopPropagation();
        }}
      />
      <span class="row2">
        <button type="submit" class="btn sm pri">
          Save note
        </button>
        <button type="button" class="btn sm" onClick={close}>
          Cancel
        </button>
        <span class="t3">Ctrl Enter saves; it is kept with this session</span>
      </span>
    </form>
  );
}
