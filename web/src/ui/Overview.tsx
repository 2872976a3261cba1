// The strip below the top bar: the verdict in words, counts, and the error over layers.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ErrorChart } from '../charts/ErrorChart';
import { count, counted } from '../fmt/number';
import type { Finding } from '../net/types';
import { open, openWorst } from '../store/deeds';
import * as state from '../store/state';
import { CLASSES, type Class, LABEL } from '../store/status';
import { placeText, residualText, sureText } from './cause';
import { Glyph, Stack } from './parts';
import { verdictOf } from './verdict';

function counts(): Record<Class, number> {
  const s = state.session.value!.summary;
  return {
    ok: s.identical + s.equal,
    close: s.close,
    bad: s.different,
    nc: s.incomparable + s.error,
    na: s.onlyA + s.onlyB,
  };
}

function Legend() {
  const found = counts();
  const shown = CLASSES.filter((kind) => found[kind] > 0 || kind === 'ok' || kind === 'bad');
  return (
    <div class="legend">
      {shown.map((kind) => (
        <span key={kind} title={LABEL[kind]}>
          <Glyph kind={kind} size="s" />
          <b>{count(found[kind])}</b>
          <span class="lb">{LABEL[kind]}</span>
        </span>
      ))}
    </div>
  );
}

/** As many as fit the line; the list has them all. */
const ALSO_MAX = 2;
const MANY = 5000;
const LATER_MS = 100;

/** With very many pairs the list comes first, and a moment later the chart of all of them. */
function Chart() {
  const isDue = useSignal(state.store.value.n < MANY);
  useEffect(() => {
    const timer = setTimeout(() => {
      isDue.value = true;
    }, LATER_MS);
    return () => clearTimeout(timer);
  }, []);
  return isDue.value ? <ErrorChart /> : <div class="chart" />;
}

/** The way to the table of the conversion, where two checkpoints tell one. */
function Conversion() {
  const rules = state.session.value!.conversion;
  if (rules.length === 0) return null;
  const exceptions = rules.reduce((sum, rule) => sum + rule.exceptions.length, 0);
  return (
    <button
      type="button"
      class="lnk hide-s"
      onClick={() => {
        state.dialog.value = 'conversion';
      }}
    >
      Conversion: {counted(rules.length, 'rule')}
      {exceptions > 0 && `, ${counted(exceptions, 'exception')}`}
    </button>
  );
}

/** The cause in one sentence, how sure that is, and what it explains. */
function Cause({ cause }: { cause: Finding }) {
  return (
    <>
      <p class="cause" title={cause.explanation}>
        <b>{cause.explanation}</b>
        <span class="t3">{sureText(cause)}</span>
      </p>
      <p class="clip t2">{residualText(cause)}</p>
    </>
  );
}

/** Errors that are made after the first one. */
function Also() {
  const next = state.session.value!.nextDivergences;
  if (next.length === 0) return null;
  return (
    <p class="also">
      <span class="clip">
        also{' '}
        {next.slice(0, ALSO_MAX).map((each, i) => (
          <>
            {i > 0 && '; '}
            <button type="button" class="lnk" onClick={() => open(each.pair)}>
              {placeText(each)}
            </button>
          </>
        ))}
      </span>
      <button
        type="button"
        class="btn sm"
        onClick={() => {
          state.dialog.value = 'divergences';
        }}
      >
        List all {count(next.length + 1)}
      </button>
    </p>
  );
}

export function Overview() {
  state.rowsRev.value;
  const session = state.session.value!;
  const verdict = verdictOf(session, state.store.value);
  const found = counts();
  const notes = session.notes.join('; ');
  const rest = verdict.cause ? notes : [verdict.evidence, notes].filter(Boolean).join('\n');
  return (
    <section class="over" aria-label="Overview">
      <div class="verdict">
        <h1>
          <Glyph kind={verdict.kind} />
          <span class="clip" title={verdict.head}>
            {verdict.head}
          </span>
        </h1>
        {verdict.cause && <Cause cause={verdict.cause} />}
        <p class="clip" title={verdict.cause ? verdict.evidence : ''}>
          {verdict.at && (
            <>
              {verdict.at.lead}{' '}
              <button type="button" class="lnk" onClick={() => openWorst(verdict.at!.id)}>
                {verdict.at.name}
              </button>
              ,{' '}
            </>
          )}
          {verdict.before}
        </p>
        <div class="stack" role="img" aria-label="Share of pairs by status">
          <Stack classes={CLASSES.map((kind) => found[kind])} kinds={CLASSES} />
        </div>
        <Legend />
        <Also />
        <Conversion />
        {rest && (
          <p class="clip hide-s why" title={rest}>
            {rest}
          </p>
        )}
      </div>
      <Chart />
    </section>
  );
}
