import { expect, test } from 'vitest';
import { columnsOf, PairStore } from '../store/pairs';
import { CLASSES } from '../store/status';
import { parseFilter, passes, shapeFits } from './filter';
import { bandOf, group, hold, isOld, type Look, layOut } from './flatten';
import { groupAbove, moveFocus } from './keys';

const row = (
  id: number,
  layer: number,
  stage: string,
  more: Record<string, number | string> = {},
) => ({
  id,
  order: id,
  layer,
  stage,
  status: 3,
  ratio: 0.5,
  cosine: 1,
  maxAbs: 1e-4,
  elements: 10,
  nameA: `${layer}_${stage}`,
  nameB: `${layer}_${stage}`,
  dtypeA: 'f32',
  dtypeB: 'bf16',
  shapeA: '4,4096',
  shapeB: '4,4096',
  group: layer < 0 ? 'head' : `layer ${layer}`,
  matchedBy: 'exact',
  note: 0,
  ...more,
});

function store() {
  const made = new PairStore();
  made.take(
    columnsOf([
      row(0, 0, 'query'),
      row(1, 0, 'key', { status: 1, ratio: 0, cosine: Number.NaN, elements: 99 }),
      row(2, 1, 'query', { status: 4, ratio: 8, maxAbs: 0.5, cosine: 0.95 }),
      row(3, 1, 'key', { status: 7, dtypeB: '', nameB: '', ratio: Number.NaN }),
      row(4, -1, 'lm_head', { status: 5, ratio: Number.NaN, shapeA: '8' }),
    ]),
  );
  return made;
}

const look = (more: Partial<Look> = {}): Look => ({
  held: new Map(),
  alone: false,
  group: 'layer',
  sort: 'order',
  filter: parseFilter(''),
  classes: new Set(CLASSES),
  ...more,
});

const flatten = (rows: PairStore, how: Look, closed = new Set<string>()) =>
  layOut(group(rows, how), closed);

const found = (text: string) => {
  const all = store();
  const filter = parseFilter(text);
  return Array.from({ length: all.n }, (_, r) => r).filter((r) => passes(filter, all, r));
};

test.each([
  ['query', [0, 2]],
  ['QUERY 1_', [2]],
  ['-query', [1, 3, 4]],
  ['/^1_.*y$/', [2, 3]],
  ['Δ>1e-3', [2]],
  ['d<=1e-4 query', [0]],
  ['ratio>1', [2]],
  ['dtype:bf16', [0, 1, 2, 4]],
  ['shape:*×4096', [0, 1, 2, 3, 4]],
  ['shape:8', [4]],
  ['layer:1', [2, 3]],
  ['by:exact stage:key', [1, 3]],
  ['size>50', [1]],
])('filter %s', (text, rows) => {
  expect(found(text)).toEqual(rows);
});

test('a broken regex is named, and hides nothing', () => {
  const filter = parseFilter('/(/');
  expect(filter.error).toContain('Invalid regular expression');
  expect(filter.tests).toEqual([]);
});

test('shapes', () => {
  expect(shapeFits('*×4096', '512,4096')).toBe(true);
  expect(shapeFits('*×4096', '4,512,4096')).toBe(false);
  expect(shapeFits('…×4096', '4,512,4096')).toBe(true);
  expect(shapeFits('512', '4,512,4096')).toBe(true);
});

test('groups in order of their rows, with counts and the worst ratio', () => {
  const flat = flatten(store(), look());
  expect([...flat.codes]).toEqual([-1, 0, 1, -2, 2, 3, -3, 4]);
  expect(flat.groups.map(({ label, size }) => [label, size])).toEqual([
    ['layer 0', 2],
    ['layer 1', 2],
    ['head', 1],
  ]);
  expect(flat.groups[1]).toMatchObject({ worst: 8, classes: [0, 0, 1, 0, 1] });
});

test('closed groups keep their row', () => {
  expect([...flatten(store(), look(), new Set(['layer 0'])).codes]).toEqual([-1, -2, 2, 3, -3, 4]);
});

test('chips hide, and say how many', () => {
  const flat = flatten(
    store(),
    look({ classes: new Set(['bad'] as const), filter: parseFilter('query') }),
  );
  expect([flat.shown, flat.hidden.close, flat.hidden.ok]).toEqual([1, 1, 0]);
});

test.each([
  ['difference', [2, 0, 1, 3, 4]],
  ['similarity', [2, 0, 3, 4, 1]],
  ['size', [1, 0, 2, 3, 4]],
  ['name', [4, 1, 0, 3, 2]],
] as const)('sort by %s', (sort, rows) => {
  expect([...flatten(store(), look({ group: 'none', sort })).codes]).toEqual(rows);
});

test('similarity bands', () => {
  expect([1, 0.9999999, 0.95, -1, Number.NaN].map(bandOf)).toEqual([
    'identical direction',
    '≥ 0.999999',
    '≥ 0.9',
    'below 0.9',
    'no cosine',
  ]);
});

test('keys of the tree stay inside it', () => {
  expect(moveFocus(10, 0, 'up', 5)).toBe(0);
  expect(moveFocus(10, 7, 'pageDown', 5)).toBe(9);
  expect(moveFocus(10, 3, 'last', 5)).toBe(9);
  const flat = flatten(store(), look());
  expect([groupAbove(flat, 5), groupAbove(flat, 0)]).toEqual([3, 0]);
});

test('numbers that come later move no row until it is asked for', () => {
  const rows = store();
  const held = hold(rows);
  const arranged = (now: typeof held) => [
    ...flatten(rows, look({ group: 'none', sort: 'difference', held: now })).codes,
  ];
  const before = arranged(held);
  expect(isOld(held, rows, 'ratio')).toBe(false);
  rows.column('ratio')![before[before.length - 1]] = 1e9;
  expect(isOld(held, rows, 'ratio')).toBe(true);
  expect(arranged(held)).toEqual(before);
  expect(arranged(hold(rows))[0]).toBe(before[before.length - 1]);
});
