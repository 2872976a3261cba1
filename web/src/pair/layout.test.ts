import { expect, test } from 'vitest';
import { exampleOf } from './LayoutEditor';

test('axes of one size have one name', () => {
  expect(exampleOf([4, 512, 64], [512, 4, 64])).toBe('i j k -> j i k');
  expect(exampleOf([2, 2], [2, 2])).toBe('i j -> i j');
  expect(exampleOf([6], [2, 3])).toBe('i -> 1 1');
});
