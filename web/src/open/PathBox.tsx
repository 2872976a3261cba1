// A path with completion from the server: only folders that it may read.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { bytes } from '../fmt/number';
import * as api from '../net/api';
import { isAbort, Latest } from '../net/http';
import type { FsList } from '../net/types';
import { Icon } from '../ui/parts';
import { splitPath } from './path';
import { addPath, type SideName } from './slots';

interface EntriesProps {
  id: string;
  list: FsList | null;
  chosen: number;
  onTake: (entry: FsList['entries'][number]) => void;
}

function Entries({ id, list, chosen, onTake }: EntriesProps) {
  const entries = list?.entries ?? [];
  return (
    <ul class="pal drop" id={id} role="listbox" aria-label="Files" hidden={entries.length === 0}>
      {entries.slice(0, 200).map((entry, i) => (
        <li
          key={entry.path}
          id={`${id}-${i}`}
          role="option"
          aria-selected={i === chosen}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onTake(entry)}
        >
          <Icon name={entry.kind} size="s" />
          <span class="nm clip m">{list!.dir ? entry.name : entry.path}</span>
          <span class="t3">{entry.kind === 'file' ? bytes(entry.bytes) : ''}</span>
        </li>
      ))}
    </ul>
  );
}

export function PathBox({ side }: { side: SideName }) {
  const text = useSignal('');
  const list = useSignal<FsList | null>(null);
  const chosen = useSignal(-1);
  const latest = useRef(new Latest());
  const look = async (value: string) => {
    text.value = value;
    chosen.value = -1;
    const { dir, prefix } = splitPath(value);
    try {
      list.value = await api.listFiles(dir, prefix, latest.current.next());
    } catch (error) {
      if (!isAbort(error)) list.value = null;
    }
  };
  const take = (entry: FsList['entries'][number]) => {
    if (entry.kind === 'folder') look(`${entry.path.replace(/\/$/, '')}/`);
    else submit(entry.path);
  };
  const submit = (path: string) => {
    latest.current.stop();
    list.value = null;
    if (path.trim() !== '') addPath(side, path.trim());
  };
  const entries = list.value?.entries ?? [];
  const onKey = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by !== undefined)
      chosen.value = Math.max(-1, Math.min(entries.length - 1, chosen.value + by));
    else if (event.key === 'Enter') {
      if (chosen.value >= 0) take(entries[chosen.value]);
      else submit(text.value);
    } else if (event.key === 'Escape') list.value = null;
    else return;
    event.preventDefault();
  };
  const id = `paths-${side}`;
  return (
    <div class="pathbox">
      <div class="inp">
        <Icon name="folder" />
        <input
          class="m"
          role="combobox"
          aria-label={`Path for ${side.toUpperCase()}`}
          aria-expanded={entries.length > 0}
          aria-controls={id}
          aria-activedescendant={chosen.value >= 0 ? `${id}-${chosen.value}` : ''}
          placeholder="/data/run/dump.zip, a folder, a checkpoint"
          spellcheck={false}
          autocomplete="off"
          value={text.value}
          onFocus={() => look(text.value)}
          onInput={(event) => look(event.currentTarget.value)}
          onKeyDown={onKey}
          onBlur={() => {
            latest.current.stop();
            list.value = null;
          }}
        />
        <button
          type="button"
          class="btn sm"
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => submit(text.value)}
        >
          Open
        </button>
      </div>
      <Entries id={id} list={list.value} chosen={chosen.value} onTake={take} />
    </div>
  );
}
