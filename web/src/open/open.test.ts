import { expect, test } from 'vitest';
import { formatText } from './format';
import { splitPath } from './path';
import { missing, Rate } from './upload';

test('only the chunks that did not arrive are sent', () => {
  expect(missing(5, [])).toEqual([0, 1, 2, 3, 4]);
  expect(
    missing(5, [
      [0, 2],
      [3, 4],
    ]),
  ).toEqual([2, 4]);
  expect(missing(2, [[0, 2]])).toEqual([]);
});

test('the rate is that of the last seconds', () => {
  const rate = new Rate();
  expect(rate.add(0, 0)).toBe(0);
  expect(rate.add(1000, 5e6)).toBe(5e6);
  for (let second = 2; second <= 10; second++) rate.add(second * 1000, 5e6 + second);
  expect(rate.add(11_000, 5e6 + 11)).toBeLessThan(10);
});

test.each([
  ['', { dir: null, prefix: '' }],
  ['ll', { dir: null, prefix: 'll' }],
  ['/data/ll', { dir: '/data', prefix: 'll' }],
  ['/data/', { dir: '/data', prefix: '' }],
  ['/d', { dir: '/', prefix: 'd' }],
])('splitPath(%s)', (text, parts) => {
  expect(splitPath(text)).toEqual(parts);
});

test.each([
  ['torch-zip', 'model.ckpt', '.ckpt'],
  ['torch-zip', 'weights', '.pt'],
  ['torch-zip', 'MODEL.PTH', '.pth'],
  ['zarr', 'orbax', 'zarr'],
  ['several', 'two files', 'several'],
])('formatText(%s, %s)', (format, file, text) => {
  const known = [
    { name: 'torch-zip', summary: '', extensions: '.pt .pth .ckpt' },
    { name: 'zarr', summary: '', extensions: '' },
  ];
  expect(formatText(format, file, known)).toBe(text);
});
