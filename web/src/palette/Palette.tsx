// Ctrl K: pairs by name, commands behind ">", an index of the open pair.
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { times } from '../fmt/number';
import { parsePlace } from '../fmt/shape';
import { COMMANDS } from '../keys/keys';
import { collapseAll, open } from '../store/deeds';
import { leaveSession } from '../store/session';
import * as state from '../store/state';
import { classOfCode } from '../store/status';
import * as view from '../store/view';
import { closeDialog, Dialog } from '../ui/Dialog';
import { Glyph, Icon } from '../ui/parts';
import { best, Typed } from './search';

interface Entry {
  text: string;
  hint: string;
  row: number;
  run: () => void;
}

const SHOWN = 40;

const commands = (): Entry[] => [
  ...COMMANDS.filter((command) => !command.inMap).map((command) => ({
    text: command.text,
    hint: command.key,
    row: -1,
    run: command.run,
  })),
  ...(['export', 'tolerance', 'matching'] as const).map((dialog) => ({
    text: {
      export: 'Export results',
      tolerance: 'Set the tolerance',
      matching: 'Matching and pairings',
    }[dialog],
    hint: '',
    row: -1,
    run: () => {
      state.dialog.value = dialog;
    },
  })),
  { text: 'Open other tensors', hint: '', row: -1, run: leaveSession },
  { text: 'Collapse all groups', hint: 'Shift+C', row: -1, run: collapseAll },
];

function entriesFor(query: string, typed: Typed): Entry[] {
  if (query.startsWith('>'))
    return best(commands(), (entry) => entry.text, query.slice(1).trim(), SHOWN);
  const store = state.store.value;
  const pairs = typed.best(query, SHOWN).map((row) => ({
    text: store.name(row),
    hint: times(store.num('ratio', row)),
    row,
    run: () => open(store.id(row)),
  }));
  const place = query ? parsePlace(query, view.sliceA.value.shape) : null;
  const jump = place
    ? [
        {
          text: `Go to [${place.join(', ')}] of this pair`,
          hint: 'G',
          row: -1,
          run: () => view.goTo(place),
        },
      ]
    : [];
  const some = query ? best(commands(), (entry) => entry.text, query, 5) : [];
  return [...jump, ...pairs, ...some];
}

export function Palette() {
  const query = useSignal('');
  const chosen = useSignal(0);
  const store = state.store.value;
  const typed = useMemo(() => new Typed(store.n, (row) => store.haystack(row)), [store]);
  const entries = useMemo(() => entriesFor(query.value, typed), [query.value, typed]);
  const at = Math.min(chosen.value, entries.length - 1);
  const run = (entry: Entry | undefined) => {
    closeDialog();
    entry?.run();
  };
  const onKey = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by !== undefined) chosen.value = Math.max(0, Math.min(entries.length - 1, at + by));
    else if (event.key === 'Enter') run(entries[at]);
    else return;
    event.preventDefault();
    document.getElementById(`hit-${chosen.value}`)?.scrollIntoView({ block: 'nearest' });
  };
  return (
    <Dialog title="Search" bare>
      <div class="palin">
        <Icon name="search" />
        <input
          aria-label="Search pairs and commands"
          role="combobox"
          aria-expanded="true"
          aria-controls="hits"
          aria-activedescendant={entries.length > 0 ? `hit-${at}` : ''}
          placeholder="A pair, an index such as 0, 3, 17, or > and a command"
          autofocus
          spellcheck={false}
          onInput={(event) => {
            query.value = event.currentTarget.value;
            chosen.value = 0;
          }}
          onKeyDown={onKey}
        />
      </div>
      <ul class="pal" id="hits" role="listbox" aria-label="Results">
        {entries.map((entry, i) => (
          <li
            key={`${entry.text} ${entry.row}`}
            id={`hit-${i}`}
            role="option"
            aria-selected={i === at}
            onClick={() => run(entry)}
          >
            {entry.row >= 0 ? (
              <Glyph kind={classOfCode[state.store.value.status(entry.row)]} size="s" />
            ) : (
              <Icon name="chevr" size="s" />
            )}
            <span class="nm clip">{entry.text}</span>
            <span class="t3 m">{entry.hint}</span>
          </li>
        ))}
        {entries.length === 0 && (
          <li role="option" aria-selected="false">
            Nothing by that name
          </li>
        )}
      </ul>
    </Dialog>
  );
}
