import { expect, test } from 'vitest';
import { best, score, Typed } from './search';

test('all letters, in order', () => {
  expect(score('model.layers.11.mlp', 'l11mlp')).not.toBeNull();
  expect(score('model.layers.11.mlp', 'mlpx')).toBeNull();
});

test('starts of words and runs count more', () => {
  const names = ['0_post_attn', '1_query', '1_query_final', 'aqbuce'];
  expect(best(names, (name) => name, '1query', 2)[0]).toBe('1_query');
  expect(best(names, (name) => name, 'que', 9)[0]).toBe('1_query');
});

test('no query gives the first ones', () => {
  expect(best(['a', 'b', 'c'], (name) => name, '', 2)).toEqual(['a', 'b']);
});

test('typed letter by letter, and back again', () => {
  const names = ['0_post_attn', '1_query', '1_query_final', 'other', 'Query'];
  const typed = new Typed(names.length, (i) => names[i]);
  const found = (query: string) => typed.best(query, 9).map((i) => names[i]);
  for (const query of ['q', 'qu', 'que', 'quer', 'q', '', '1q', 'zz', 'o'])
    expect(found(query)).toEqual(best(names, (name) => name, query, 9));
});
