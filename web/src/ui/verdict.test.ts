import { expect, test } from 'vitest';
import type { Session } from '../net/types';
import { columnsOf, PairStore } from '../store/pairs';
import { verdictOf } from './verdict';

const store = new PairStore();
store.take(
  columnsOf([
    { id: 0, order: 0, status: 3, layer: 0, stage: 'query', nameA: '0_query', nameB: '0_query' },
    { id: 1, order: 1, status: 1, layer: 0, stage: 'key', nameA: '0_key', nameB: '0_key' },
    { id: 2, order: 2, status: 4, layer: 1, stage: 'query', nameA: '1_query', nameB: '1_query' },
  ]),
);

const session = (more: Partial<Session>, verdict: Session['summary']['verdict'] = 'different') =>
  ({
    mode: 'compare',
    state: 'done',
    error: null,
    firstDivergence: null,
    steps: true,
    findings: [],
    a: [],
    b: [],
    progress: { done: 1, of: 3 },
    summary: {
      pairs: 3,
      identical: 1,
      equal: 0,
      close: 1,
      different: 1,
      incomparable: 0,
      error: 0,
      pending: 0,
      onlyA: 0,
      onlyB: 0,
      verdict,
    },
    ...more,
  }) as unknown as Session;

test('where, and why', () => {
  const first = {
    pair: 2,
    nameA: 'query',
    nameB: 'query',
    layer: 1,
    stage: 'query',
    created: true,
    explanation: 'its inputs agree',
  };
  const finding = { code: 'scale', pair: 2, explanation: 'b = 0.125 × a' };
  const found = verdictOf(session({ firstDivergence: first, findings: [finding as never] }), store);
  expect(found).toEqual({
    kind: 'bad',
    head: 'Diverges in layer 1',
    at: { id: 2, name: 'query', lead: 'First at' },
    before: 'all 2 pairs before it are within tolerance',
    cause: finding,
    evidence: 'its inputs agree',
  });
});

test('weights have no first one: the largest change is told', () => {
  const weights = new PairStore();
  weights.take(
    columnsOf([
      { id: 0, order: 0, status: 4, layer: 0, stage: '', nameA: 'a', nameB: 'a', relL2: 0.1 },
      { id: 1, order: 1, status: 4, layer: 0, stage: '', nameA: 'b', nameB: 'b', relL2: 0.5 },
      { id: 2, order: 2, status: 3, layer: 0, stage: '', nameA: 'c', nameB: 'c', relL2: 0.9 },
    ]),
  );
  const first = { pair: 0, nameA: 'a', nameB: 'a', layer: 0, stage: '', created: false };
  const given = session({ firstDivergence: first as never, steps: false });
  given.summary.different = 2;
  expect(verdictOf(given, weights)).toMatchObject({
    head: '2 of 3 tensors changed',
    at: { id: 1, name: 'b', lead: 'Largest change:' },
    before: 'relative L2 0.5',
  });
});

test.each([
  [session({ state: 'comparing' }, null), 'Comparing…', '1 of 3 pairs'],
  [session({ state: 'failed', error: 'no such file' }), 'Could not compare', 'no such file'],
  [session({}, 'same'), 'Identical', 'all 3 pairs have the same values'],
  [session({}, 'close'), 'Agree within tolerance', '1 pair equal, 1 pair close'],
  [session({}), '1 pair differs', 'no single step stands out'],
])('verdict %#', (given, head, before) => {
  expect(verdictOf(given, store)).toMatchObject({ head, before });
});
