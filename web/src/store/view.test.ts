import { beforeEach, expect, test } from 'vitest';
import { scaled, shifted } from '../heat/move';
import type { Pair } from '../net/types';
import * as view from './view';

const pairOf = (shape: number[] | null, a: number[], b: number[]) =>
  ({ shape, a: { shape: a }, b: { shape: b }, metrics: null }) as unknown as Pair;

beforeEach(() => {
  view.linked.value = true;
  view.sliceA.value = { shape: [], y: -1, x: -1, at: [] };
});

test('the last two axes are the plane, whatever the rank', () => {
  view.lookAt(pairOf([2, 3, 4, 5, 6], [], []));
  expect(view.planeText.value).toBe('0,0,0,y,x');
  view.lookAt(pairOf([7], [], []));
  expect(view.planeText.value).toBe('x');
  view.lookAt(pairOf([], [], []));
  expect(view.planeText.value).toBe('');
});

test('the next pair of the same shape keeps slice and zoom', () => {
  view.lookAt(pairOf([4, 100, 200], [], []));
  view.goTo([2, 50, 60]);
  view.zoom.value = { y: { from: 40, to: 60 }, x: { from: 50, to: 70 } };
  view.lookAt(pairOf([4, 100, 200], [], []));
  expect(view.cursor.value).toEqual([2, 50, 60]);
  expect(view.zoom.value.x).toEqual({ from: 50, to: 70 });
  view.lookAt(pairOf([4, 100, 201], [], []));
  expect(view.cursor.value).toEqual([0, 0, 0]);
});

test('without a place of someone’s choice, the cursor is at the worst element of each pair', () => {
  const worst = (at: number[]) =>
    ({ ...pairOf([4, 100], [], []), metrics: { maxAbsAt: at } }) as Pair;
  view.lookAt(worst([1, 2]));
  expect(view.cursor.value).toEqual([1, 2]);
  view.lookAt(worst([3, 70]));
  expect(view.cursor.value).toEqual([3, 70]);
  view.goTo([2, 5]);
  view.lookAt(worst([0, 9]));
  expect(view.cursor.value).toEqual([2, 5]);
});

test('the list of values has the worst element in it', () => {
  view.forgetPlace();
  view.lookAt({ ...pairOf([64], [], []), metrics: { maxAbsAt: [14] } } as Pair);
  expect(view.rangeA.value).toEqual({ from: 9, to: 19 });
});

test('a jump takes the window and the range along', () => {
  view.lookAt(pairOf([100, 200], [], []));
  view.zoom.value = { y: { from: 0, to: 10 }, x: { from: 0, to: 20 } };
  view.goTo([99, 150]);
  expect(view.zoom.value).toEqual({ y: { from: 90, to: 100 }, x: { from: 140.5, to: 160.5 } });
  expect(view.rangeA.value).toEqual({ from: 145, to: 155 });
});

test('tensors without a common layout are sliced apart', () => {
  view.lookAt(pairOf(null, [3, 4], [5]));
  expect(view.linked.value).toBe(false);
  expect([view.atText(view.sliceA.value), view.atText(view.sliceB.value)]).toEqual(['y,x', 'x']);
});

test('any axis can be rows or columns', () => {
  view.lookAt(pairOf([2, 3, 4], [], []));
  view.setPlane(0, 'y');
  expect(view.planeText.value).toBe('y,0,x');
  view.setPlane(2, 'y');
  expect(view.planeText.value).toBe('x,0,y');
  view.step(1, 99);
  expect(view.cursor.value).toEqual([0, 2, 0]);
});

test('windows stay inside the plane', () => {
  expect(scaled({ from: 0, to: 100 }, 0.5, 0.25, 100)).toEqual({ from: 12.5, to: 62.5 });
  expect(scaled({ from: 0, to: 100 }, 1e-9, 0, 100)).toEqual({ from: 0, to: 4 });
  expect(scaled({ from: 0, to: 2 }, 0.1, 0, 2)).toEqual({ from: 0, to: 2 });
  expect(shifted({ from: 0, to: 10 }, -3, 100)).toEqual({ from: 0, to: 10 });
  expect(shifted({ from: 0, to: 10 }, 99, 100)).toEqual({ from: 90, to: 100 });
});
