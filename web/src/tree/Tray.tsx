// Tensors without a partner: drag one onto another, or choose one of each side and press P.
import { drag, pointerDown } from '../dnd/pointer';
import { inTwo } from '../fmt/name';
import { STATUS } from '../net/wire';
import { pairChosen } from '../store/deeds';
import { trayOpen } from '../store/prefs';
import * as state from '../store/state';
import { Icon, SideMark } from '../ui/parts';

const SHOWN_MAX = 60;

/** Rows of the store that only one side has, those likest to something first. */
function orphans(side: 'a' | 'b'): number[] {
  state.rowsRev.value;
  const store = state.store.value;
  const wanted = STATUS.indexOf(side === 'a' ? 'only_a' : 'only_b');
  const rows: number[] = [];
  for (let row = 0; row < store.n; row++) if (store.status(row) === wanted) rows.push(row);
  return rows.sort((x, y) => (store.num('likeness', y) || 0) - (store.num('likeness', x) || 0));
}

/** Letters at the end of a name that are never cut. */
const LAST_MAX = 14;

function Orphan({ row, side }: { row: number; side: 'a' | 'b' }) {
  const store = state.store.value;
  const name = store.name(row);
  const [start, end] = inTwo(name, LAST_MAX);
  const chosen = side === 'a' ? state.chosenA : state.chosenB;
  const other = side === 'a' ? state.chosenB : state.chosenA;
  const isOver = drag.value?.over?.kind === 'tensor' && drag.value.over.name === name;
  // The likest partner of what was chosen on the other side is offered.
  const isNearest = other.value !== null && store.text('nearest', row) === other.value;
  const likeness = store.num('likeness', row);
  const nearest = store.text('nearest', row);
  const side2 = side.toUpperCase();
  const facts = `${store.text(`dtype${side2}`, row)} [${store.text(`shape${side2}`, row)}]`;
  return (
    <button
      type="button"
      class={`orph ${isOver || isNearest ? 'drop' : ''}`}
      aria-pressed={chosen.value === name}
      title={`${name}, ${facts}${nearest ? `, most like ${nearest}` : ''}`}
      data-drop="tensor"
      data-side={side}
      data-name={name}
      onClick={() => {
        chosen.value = chosen.value === name ? null : name;
      }}
      onPointerDown={(event) => pointerDown(event, { kind: 'tensor', side, name, label: name })}
    >
      <Icon name="grip" kind="grip" />
      <SideMark side={side} small />
      <span class="nm clip">{start}</span>
      <span class="last">{end}</span>
      {likeness > 0 && (
        <small title={`similarity to ${store.text('nearest', row)}`}>{likeness.toFixed(2)}</small>
      )}
    </button>
  );
}

export function Tray() {
  const rows = { a: orphans('a'), b: orphans('b') };
  if (state.exploring.value || rows.a.length + rows.b.length === 0) return null;
  const ready = state.chosenA.value !== null && state.chosenB.value !== null;
  return (
    <section class="tray" aria-label="Unpaired tensors">
      <h3>
        <Icon name="link" />
        Unpaired
        <small>
          drag onto its partner, or select two and press <kbd>P</kbd>
        </small>
        {ready && (
          <button type="button" class="btn sm pri" onClick={pairChosen}>
            Pair
          </button>
        )}
        <button
          type="button"
          class="btn g sm"
          aria-label={trayOpen.value ? 'Collapse tray' : 'Open tray'}
          aria-expanded={trayOpen.value}
          onClick={() => {
            trayOpen.value = !trayOpen.value;
          }}
        >
          <Icon name={trayOpen.value ? 'chev' : 'up'} />
        </button>
      </h3>
      {trayOpen.value && (
        <div class="pair2">
          {(['a', 'b'] as const).map((side) => (
            <div key={side}>
              {rows[side].slice(0, SHOWN_MAX).map((row) => (
                <Orphan key={row} row={row} side={side} />
              ))}
              {rows[side].length > SHOWN_MAX && (
                <span class="t3">{rows[side].length - SHOWN_MAX} more in the list</span>
              )}
              {rows[side].length === 0 && <span class="t3">none in {side.toUpperCase()}</span>}
            </div>
          ))}
        </div>
      )}
    </section>
  );
}
