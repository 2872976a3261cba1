// The head of a pair: names, status, shapes before and after with every step as a chip.
import { useSignal } from '@preact/signals';
import { times, toNumber } from '../fmt/number';
import { shapeText } from '../fmt/shape';
import { stepText } from '../fmt/steps';
import type { Pair, Side, Step } from '../net/types';
import { unpair, walk } from '../store/deeds';
import * as state from '../store/state';
import { classOf, type Status, statusText } from '../store/status';
import { Badge, Icon, SideMark } from '../ui/parts';
import { Findings } from './FindingCard';
import { copyNumpy } from './jumps';
import { LayoutEditor } from './LayoutEditor';
import { NoteEditor } from './Note';
import { Relation } from './Relation';

/** The name with layer and stage in bold, the rest quiet. */
function Path({ pair }: { pair: Pair }) {
  const name = pair.a?.name ?? pair.b?.name ?? '';
  const stage = pair.stage ?? '';
  const at = stage ? name.lastIndexOf(stage) : -1;
  const other = pair.a && pair.b && pair.a.name !== pair.b.name ? pair.b.name : null;
  return (
    <span class="path clip" title={other ? `${name} ↔ ${other}` : name}>
      {at < 0 ? (
        name
      ) : (
        <>
          <em>{name.slice(0, at)}</em>
          {stage}
          <em>{name.slice(at + stage.length)}</em>
        </>
      )}
      {other && <em> ↔ {other}</em>}
    </span>
  );
}

function StatusBadge({ pair }: { pair: Pair }) {
  const kind = classOf(pair.status as Status);
  const ratio = toNumber(pair.metrics?.ratio ?? null);
  const tail = kind === 'bad' && ratio > 1 ? `, ${times(ratio)} tol` : '';
  return (
    <Badge kind={kind}>
      {statusText(pair.status)}
      {tail}
    </Badge>
  );
}

const introducedText = (introduced: boolean | null) =>
  introduced === null
    ? null
    : introduced
      ? 'Introduced here: its inputs match'
      : 'Carried here: an input differs already';

function SideLine({ side, data, steps }: { side: 'a' | 'b'; data: Side | null; steps: Step[] }) {
  return (
    <>
      <SideMark side={side} small />
      {data ? (
        <>
          <span class="sh">{shapeText(data.shape)}</span>
          <span class="t3">{data.dtype}</span>
          {steps.map((step, i) => (
            <span key={i} class="step">
              {stepText(step)}
            </span>
          ))}
        </>
      ) : (
        <span class="t3">not in {side.toUpperCase()}</span>
      )}
    </>
  );
}

function Actions({ pair, onNote }: { pair: Pair; onNote: () => void }) {
  return (
    <span class="acts">
      <button
        type="button"
        class={`btn g sm ${pair.note ? 'on' : ''}`}
        aria-label="Note on this pair"
        title={pair.note ?? 'Note on this pair'}
        onClick={onNote}
      >
        <Icon name="note" />
      </button>
      <button
        type="button"
        class="btn g sm"
        aria-label="Copy as Python"
        title="Copy as Python (Shift+Y)"
        onClick={copyNumpy}
      >
        <Icon name="copy" />
      </button>
      {pair.a && pair.b && state.session.value?.mode !== 'explore' && (
        <button
          type="button"
          class="btn g sm"
          aria-label="Unpair"
          title="Unpair (U)"
          onClick={() => unpair(pair.id)}
        >
          <Icon name="x" />
        </button>
      )}
      <button type="button" class="btn sm" aria-keyshortcuts="K" onClick={() => walk(-1, false)}>
        <Icon name="up" />
        <span class="vh">Previous pair</span>
        <kbd aria-hidden="true">K</kbd>
      </button>
      <button type="button" class="btn sm" aria-keyshortcuts="J" onClick={() => walk(1, false)}>
        <Icon name="chev" />
        <span class="vh">Next pair</span>
        <kbd aria-hidden="true">J</kbd>
      </button>
    </span>
  );
}

interface Editing {
  what: 'note' | 'layout';
  pair: number;
}

export function PairHeader({ pair }: { pair: Pair }) {
  const editing = useSignal<Editing | null>(null);
  // Of the pair that it was opened for: another one that comes meanwhile is not edited by it.
  const edited = editing.value?.pair === pair.id ? editing.value.what : null;
  const edit = (what: Editing['what']) => {
    state.awaitsFirst.value = false;
    editing.value = edited === what ? null : { what, pair: pair.id };
  };
  const close = () => {
    editing.value = null;
  };
  const introduced = pair.status === 'different' ? introducedText(pair.introduced) : null;
  const { a, b } = pair.transforms;
  const isSame = (x: readonly number[], y: readonly number[]) => x.join() === y.join();
  const changed =
    pair.shape &&
    pair.a &&
    pair.b &&
    !(isSame(pair.a.shape, pair.shape) && isSame(pair.b.shape, pair.shape));
  return (
    <section class="ph" aria-label="Pair">
      <h2>
        <Path pair={pair} />
        <StatusBadge pair={pair} />
        {introduced && <span class="badge n hide-s">{introduced}</span>}
      </h2>
      <Actions pair={pair} onNote={() => edit('note')} />
      <div class="xf">
        <SideLine side="a" data={pair.a} steps={a} />
        {pair.b && pair.a && <span class="t3 arrow">↔</span>}
        {state.session.value?.mode !== 'explore' || pair.b ? (
          <SideLine side="b" data={pair.b} steps={b} />
        ) : null}
        {pair.a && pair.b && state.session.value?.mode !== 'explore' && (
          <button
            type="button"
            class={`btn g sm ${pair.dims ? 'on' : ''}`}
            aria-label="Name the axes"
            title={pair.dims ? `Axes by hand: ${pair.dims}` : 'Name the axes'}
            onClick={() => edit('layout')}
          >
            <Icon name="edit" />
          </button>
        )}
        {changed && (
          <span class="t3 hide-s">
            compared as <span class="sh">{shapeText(pair.shape!)}</span>
            {pair.matchedBy === 'manual' ? ', paired by hand' : `, paired by ${pair.matchedBy}`}
          </span>
        )}
      </div>
      <Relation pair={pair} />
      <Findings pair={pair} />
      {edited === 'note' && <NoteEditor pair={pair} onClose={close} />}
      {edited === 'layout' && <LayoutEditor pair={pair} onClose={close} />}
    </section>
  );
}
