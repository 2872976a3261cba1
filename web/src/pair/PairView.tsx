// The right side: one pair, from its name down to its elements.
import { useSignal } from '@preact/signals';
import { Tip } from '../grid/Tip';
import { Values } from '../grid/Values';
import { Maps } from '../heat/Maps';
import type { Pair } from '../net/types';
import { narrow } from '../store/prefs';
import * as state from '../store/state';
import { Icon } from '../ui/parts';
import { Differences } from './Differences';
import { Metrics } from './Metrics';
import { PairHeader } from './PairHeader';
import { SliceBar } from './SliceBar';
import { Strips } from './Strips';
import { Worst } from './Worst';

function Nothing() {
  const error = state.pairError.value;
  return (
    <div class="empty">
      <p class="b">{error ?? (state.openPair.value === null ? 'No pair is open' : 'Opening…')}</p>
      {!error && <p>Choose a row of the list, or press J for the next pair.</p>}
    </div>
  );
}

/** On narrow screens histogram and worst list are tabs of the values card. */
const TABS = [
  ['values', 'Values'],
  ['diff', 'Differences'],
  ['worst', 'Worst'],
] as const;

function Lower({ pair }: { pair: Pair }) {
  const tab = useSignal<'values' | 'diff' | 'worst'>('values');
  const side = (
    <>
      <Differences pair={pair} />
      {pair.metrics && <Worst pair={pair} />}
    </>
  );
  if (!narrow.value)
    return (
      <section class="low" aria-label="Values and differences">
        <Values pair={pair} />
        <div class="side">{side}</div>
      </section>
    );
  const lead = (
    <fieldset class="seg plain" aria-label="Lower card">
      {TABS.map(([key, text]) => (
        <button
          key={key}
          type="button"
          aria-pressed={tab.value === key}
          onClick={() => {
            tab.value = key;
          }}
        >
          {text}
        </button>
      ))}
    </fieldset>
  );
  return (
    <section class="low" aria-label="Values and differences">
      {tab.value === 'values' && <Values pair={pair} lead={lead} />}
      {tab.value === 'diff' && <Differences pair={pair} lead={lead} />}
      {tab.value === 'worst' && <Worst pair={pair} lead={lead} />}
    </section>
  );
}

/** Both sides are there, but nothing brings them to one shape, or nothing has yet. */
function NoLayout({ pair }: { pair: Pair }) {
  if (pair.status === 'pending')
    return (
      <div class="note nolayout">
        <Icon name="hash" />
        <span>Not compared yet. The values below are as stored, each side by itself.</span>
      </div>
    );
  return (
    <div class="note nolayout">
      <Icon name="hash" />
      <span>
        {pair.message ?? 'No layout gives both the same shape'}. The values below are as stored,
        each side by itself.
        {!state.exploring.value && ' Name the axes with the pencil above.'}
      </span>
    </div>
  );
}

export function PairView() {
  const pair = state.pair.value;
  return (
    <main class="det" aria-label="Selected pair">
      {state.pairBusy.value && <div class="busy" />}
      {!pair || (state.pairError.value && pair.id !== state.openPair.value) ? (
        <Nothing />
      ) : (
        <>
          <PairHeader pair={pair} />
          <Metrics pair={pair} />
          <SliceBar />
          <Strips pair={pair} />
          {!pair.shape && pair.a && pair.b ? <NoLayout pair={pair} /> : <Maps />}
          <Lower pair={pair} />
          <Tip />
        </>
      )}
    </main>
  );
}
