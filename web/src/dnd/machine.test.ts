import { expect, test } from 'vitest';
import { type Drag, deedOf, dragText, moved } from './machine';

const row: Drag['item'] = { kind: 'row', id: 3, label: 'query' };
const a: Drag['item'] = { kind: 'tensor', side: 'a', name: 'past_key', label: 'past_key' };
const onRow = (id: number, after: boolean): Drag['over'] => ({
  kind: 'row',
  id,
  after,
  a: 'x',
  b: 'y',
});
const drag = (item: Drag['item'], over: Drag['over']): Drag => ({ item, over, by: 'pointer' });

test('a row moves before or after another', () => {
  expect(deedOf(drag(row, onRow(5, true)))).toEqual({ kind: 'move', id: 3, to: 5, after: true });
  expect(deedOf(drag(row, onRow(3, true)))).toBeNull();
  expect(deedOf(drag(row, null))).toBeNull();
});

test('a tensor pairs with one of the other side only', () => {
  expect(deedOf(drag(a, { kind: 'tensor', side: 'b', name: 'k_31' }))).toEqual({
    kind: 'pair',
    a: 'past_key',
    b: 'k_31',
  });
  expect(deedOf(drag(a, { kind: 'tensor', side: 'a', name: 'other' }))).toBeNull();
  expect(deedOf(drag(a, onRow(5, true)))).toEqual({ kind: 'pair', a: 'past_key', b: 'y' });
  const b: Drag['item'] = { ...a, side: 'b' } as Drag['item'];
  expect(deedOf(drag(b, onRow(5, false)))).toEqual({ kind: 'pair', a: 'x', b: 'past_key' });
});

test('moving keeps every id once', () => {
  expect(moved([1, 2, 3, 4], { id: 1, to: 3, after: true })).toEqual([2, 3, 1, 4]);
  expect(moved([1, 2, 3, 4], { id: 4, to: 1, after: false })).toEqual([4, 1, 2, 3]);
  const ids = [1, 2];
  expect(moved(ids, { id: 9, to: 1, after: true })).toBe(ids);
});

test('what a screen reader hears', () => {
  expect(dragText(drag(row, null))).toBe('query picked up');
  expect(dragText(drag(row, onRow(5, false)))).toBe('move before x');
  expect(dragText(drag(a, { kind: 'tensor', side: 'a', name: 'z' }))).toBe(
    'nothing can be dropped here',
  );
});
