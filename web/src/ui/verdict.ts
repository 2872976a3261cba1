// The verdict in words, from what the server says.
import { count, counted, num } from '../fmt/number';
import type { Finding, Session } from '../net/types';
import { culprit } from '../store/culprit';
import type { PairStore } from '../store/pairs';
import { type Class, classOfCode } from '../store/status';

export interface Verdict {
  kind: Class;
  head: string;
  /** The pair to go to, and what it is called. */
  at: { id: number; name: string; lead: string } | null;
  before: string;
  /** What explains it, if that is known. */
  cause: Finding | null;
  /** Why it is a divergence, or what else there is to say. */
  evidence: string;
}

const RUNNING: Record<string, string> = {
  matching: 'Pairing tensors…',
  comparing: 'Comparing…',
  explaining: 'Looking for the cause…',
};

/** How many pairs stand before a row in execution order, and how many of them are not the same. */
function before(store: PairStore, row: number): { all: number; close: number; bad: number } {
  const order = store.column('order');
  const found = { all: 0, close: 0, bad: 0 };
  if (!order) return found;
  for (let each = 0; each < store.n; each++) {
    if (order[each] >= order[row] || !store.isPair(each)) continue;
    found.all++;
    const kind = classOfCode[store.status(each)];
    if (kind === 'bad') found.bad++;
    if (kind === 'close') found.close++;
  }
  return found;
}

function beforeText(store: PairStore, row: number): string {
  const { all, close, bad } = before(store, row);
  if (all === 0) return 'the first pair of all';
  const exceed = bad === 1 ? 'exceeds' : 'exceed';
  if (bad > 0) return `${count(bad)} of ${pairs(all)} before it ${exceed} the tolerance`;
  const how = close === 0 ? 'equal' : 'within tolerance';
  return all === 1
    ? `the pair before it is ${how}`
    : `all ${count(all)} pairs before it are ${how}`;
}

/** Of weights: how many changed, and which most. */
function changed(session: Session, store: PairStore, row: number): Verdict {
  const { different, incomparable, pairs: all } = session.summary;
  const name = store.name(row);
  const some = different + incomparable;
  const size = store.num('relL2', row);
  const head = `${count(some)} of ${counted(all, 'tensor')} changed`;
  return {
    kind: 'bad',
    head: some === 1 ? `${head}: ${name}` : head,
    at: { id: store.id(row), name, lead: 'Largest change:' },
    before: Number.isNaN(size) ? 'not a number' : `relative L2 ${num(size, 3)}`,
    cause: session.findings.find((each) => each.pair === store.id(row)) ?? null,
    evidence: '',
  };
}

function diverged(session: Session, store: PairStore): Verdict | null {
  const first = session.firstDivergence;
  const row = culprit(session, store);
  if (!first || row < 0) return null;
  if (!session.steps) return changed(session, store, row);
  const layer = store.num('layer', row);
  const stage = store.text('stage', row);
  const name = store.name(row);
  const finding = session.findings.find((each) => each.pair === first.pair);
  return {
    kind: 'bad',
    head: layer >= 0 ? `Diverges in layer ${layer}` : `Diverges at ${name}`,
    at: { id: first.pair, name: layer >= 0 && stage ? stage : name, lead: 'First at' },
    before: beforeText(store, row),
    cause: finding ?? null,
    evidence: first.explanation,
  };
}

const plain = (kind: Class, head: string, text = ''): Verdict => ({
  kind,
  head,
  at: null,
  before: text,
  cause: null,
  evidence: '',
});

export function verdictOf(session: Session, store: PairStore): Verdict {
  const { summary } = session;
  if (session.state === 'failed') return plain('nc', 'Could not compare', session.error ?? '');
  if (session.mode === 'explore') return exploring(session);
  const first = diverged(session, store);
  if (first) return first;
  const running = RUNNING[session.state];
  if (running) return plain('na', running, progressText(session));
  if (session.state === 'cancelled')
    return plain('na', 'Cancelled', `${pairs(summary.pending)} not compared`);
  const unpaired = summary.onlyA + summary.onlyB;
  if (summary.verdict === 'trouble')
    return plain('nc', 'Some tensors could not be compared', troubleText(session));
  if (summary.pairs === 0)
    return plain('nc', 'No pairs', 'no names match: pair by hand, or change the matching');
  if (summary.verdict === 'same') return plain('ok', 'Identical', sameText(summary.pairs));
  if (summary.verdict === 'close')
    return plain('close', 'Agree within tolerance', agreeText(session));
  if (summary.different > 0)
    return plain(
      'bad',
      `${pairs(summary.different)} ${summary.different === 1 ? 'differs' : 'differ'}`,
      'no single step stands out',
    );
  return plain(
    'bad',
    unpaired === 1 ? '1 tensor has no partner' : `${count(unpaired)} tensors have no partner`,
    'all pairs agree within tolerance',
  );
}

function exploring(session: Session): Verdict {
  const tensors = session.a.reduce((sum, source) => sum + source.tensors, 0);
  const { pairs: all, identical, equal } = session.summary;
  const same = identical + equal;
  const comparable = all - session.summary.incomparable - session.summary.error;
  const text =
    same > 0
      ? `${count(same)} of ${counted(all, 'pair')} have the same values`
      : `${counted(all, 'pair')}, of which ${count(comparable)} can be compared`;
  return plain('na', counted(tensors, 'tensor'), text);
}

const troubleText = ({ summary }: Session) =>
  [
    summary.error > 0 ? `${count(summary.error)} unreadable` : '',
    summary.incomparable > 0 ? `${count(summary.incomparable)} without a common layout` : '',
  ]
    .filter(Boolean)
    .join(', ');

const sameText = (n: number) =>
  n === 1 ? 'the pair has the same values' : `all ${count(n)} pairs have the same values`;

const pairs = (n: number) => counted(n, 'pair');

const agreeText = ({ summary }: Session) => {
  const same = summary.identical + summary.equal;
  return same > 0
    ? `${pairs(same)} equal, ${pairs(summary.close)} close`
    : `${pairs(summary.close)} close, none equal`;
};

const progressText = ({ progress }: Session) =>
  progress.of > 0 ? `${count(progress.done)} of ${pairs(progress.of)}` : '';
