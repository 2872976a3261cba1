import { expect, test } from 'vitest';
import { columnsOf, PairStore } from './pairs';

const rows = [
  { id: 5, status: 0, ratio: Number.NaN, nameA: 'layer.0.Q', nameB: 'q0', message: '' },
  { id: 9, status: 4, ratio: 4.4, nameA: '', nameB: 'k0', message: 'x' },
];

test('rows are found by id, names fall back to b', () => {
  const store = new PairStore();
  store.take(columnsOf(rows));
  expect([store.n, store.row(9), store.row(1)]).toEqual([2, 1, -1]);
  expect(store.name(1)).toBe('k0');
  expect(store.haystack(0)).toBe('layer.0.q\nq0');
});

test('a later answer changes only its rows', () => {
  const store = new PairStore();
  store.take(columnsOf(rows));
  const change = columnsOf([{ ...rows[0], status: 3, ratio: 0.2, message: 'now' }], 2);
  store.take({ ...change, full: false });
  expect([store.status(0), store.num('ratio', 0), store.text('message', 0)]).toEqual([
    3,
    0.2,
    'now',
  ]);
  expect([store.status(1), store.num('ratio', 1), store.text('message', 1), store.rev]).toEqual([
    4,
    4.4,
    'x',
    2,
  ]);
});

test('a column that is left out has nothing in any row', () => {
  const store = new PairStore();
  const { ratio: _, message: __, ...bare } = rows[0];
  store.take(columnsOf([bare, { ...bare, id: 9 }]));
  expect([store.num('ratio', 0), store.text('message', 0)]).toEqual([Number.NaN, '']);
  store.take({ ...columnsOf([rows[1]], 2), full: false });
  expect([store.num('ratio', 1), store.text('message', 1)]).toEqual([4.4, 'x']);
  expect([store.num('ratio', 0), store.text('message', 0)]).toEqual([Number.NaN, '']);
  store.take({ ...columnsOf([{ ...bare, id: 9 }], 3), full: false });
  expect([store.num('ratio', 1), store.text('message', 1)]).toEqual([Number.NaN, '']);
});

test('a row that is not known is passed over', () => {
  const store = new PairStore();
  store.take(columnsOf(rows));
  store.take({ ...columnsOf([{ ...rows[0], id: 77 }], 3), full: false });
  expect(store.n).toBe(2);
});
