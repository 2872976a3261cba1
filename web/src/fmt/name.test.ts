import { expect, test } from 'vitest';
import { inTwo } from './name';

test('as many last parts as there is room for are kept together', () => {
  expect(inTwo('model.layers.0.block_sparse_moe.experts.0.w1', 16)).toEqual([
    'model.layers.0.block_sparse_moe',
    '.experts.0.w1',
  ]);
  expect(inTwo('post_attention_layernorm.weight', 16)).toEqual([
    'post_attention_layernorm',
    '.weight',
  ]);
  expect(inTwo('query_key_value_projection', 16)).toEqual(['query_key_value_projection', '']);
  expect(inTwo('a.b', 16)).toEqual(['a', '.b']);
});
