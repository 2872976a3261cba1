// The table of the conversion between two checkpoints: what does not follow comes first.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { axe, browse, finished, folder, safetensors, serve } from './helper.mjs';

const ROWS = 12;
const COLUMNS = 8;

/** Numbers without a pattern, the same in every run. */
function numbers(count, seed) {
  let state = seed;
  return Array.from({ length: count }, () => {
    state = (state * 16807) % 2147483647;
    return state / 2147483647 - 0.5;
  });
}

const turned = (values, rows, columns) =>
  Array.from({ length: values.length }, (_, i) => values[(i % rows) * columns + Math.floor(i / rows)]);

/** Four layers whose kernels are transposed in B, but for one of them. */
function models(here) {
  const [a, b] = [{}, {}];
  for (let layer = 0; layer < 4; ++layer) {
    const wide = numbers(ROWS * COLUMNS, 11 + layer);
    const square = numbers(ROWS * ROWS, 101 + layer);
    const norm = numbers(ROWS, 1001 + layer);
    a[`model.layers.${layer}.mlp.up_proj.weight`] = [[ROWS, COLUMNS], wide];
    a[`model.layers.${layer}.mlp.down_proj.weight`] = [[COLUMNS, ROWS], wide.map((value) => 2 - value)];
    a[`model.layers.${layer}.self_attn.o_proj.weight`] = [[ROWS, ROWS], square];
    a[`model.layers.${layer}.input_layernorm.weight`] = [[ROWS], norm];
    b[`model.layers.${layer}.mlp.up_proj.kernel`] = [[COLUMNS, ROWS], turned(wide, ROWS, COLUMNS)];
    b[`model.layers.${layer}.mlp.down_proj.kernel`] =
      [[ROWS, COLUMNS], turned(wide.map((value) => 2 - value), COLUMNS, ROWS)];
    b[`model.layers.${layer}.self_attn.o_proj.kernel`] =
      [[ROWS, ROWS], layer === 2 ? square : turned(square, ROWS, ROWS)];
    b[`model.layers.${layer}.input_layernorm.weight`] = [[ROWS], norm];
  }
  return [safetensors(path.join(here, 'a.safetensors'), a), safetensors(path.join(here, 'b.safetensors'), b)];
}

test('the rules of a conversion are a table, exceptions first, each a way to its pair', async (t) => {
  const { url } = await serve(t, models(folder(t)));
  const page = await browse(t, url);
  await finished(page);
  await page.getByRole('button', { name: /^Conversion: 4 rules, 1 exception$/ }).click();
  const rows = page.locator('table.conversion tbody tr');
  assert.equal(await rows.count(), 4);
  assert.match(await rows.nth(0).innerText(), /^transposed, but not for 1:/);
  assert.match(await rows.nth(0).innerText(), /o_proj/);
  for (let i = 1; i < 4; ++i) assert.doesNotMatch(await rows.nth(i).innerText(), /but not/);
  await axe(page, 'conversion');
  if (process.env.PICTURE) await page.screenshot({ path: process.env.PICTURE });
  await rows.nth(0).getByRole('button').click();
  await page.waitForFunction(() => document.querySelector('.det h2')?.textContent.includes('o_proj'));
  assert.match(await page.locator('.finding').first().innerText(), /all others of its kind are converted/);
});
