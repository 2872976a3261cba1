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

test('what is named so comes before what has the letters', () => {
  const names = ['0.qkv_proj[q]\n0.q_proj', '0.qkv_proj[k]\n0.k_proj', '0.qkv_proj[v]\n0.v_proj'];
  expect(best(names, (name) => name, '0.k_proj', 1)).toEqual([names[1]]);
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
