// 50,000 pairs: the list is there, scrolls, filters and sorts; only a window of rows is in the page.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { browse, finished, folder, safetensors, serve } from './helper.mjs';

const LAYERS = 2500;
const EACH = 20;

function model(file, change) {
  const tensors = {};
  for (let layer = 0; layer < LAYERS; layer++)
    for (let k = 0; k < EACH; k++) tensors[`model.layers.${layer}.part_${k}`] = [[2], [layer, change(layer, k)]];
  return safetensors(file, tensors);
}

function twoModels(t) {
  const here = folder(t);
  const a = model(path.join(here, 'a.safetensors'), (_, k) => k);
  const b = model(path.join(here, 'b.safetensors'), (layer, k) => (layer === 1800 && k === 7 ? 99 : k));
  return [a, b];
}

const rowCount = (page, count) =>
  page.waitForFunction((n) => Number(document.querySelector('.rows').getAttribute('aria-rowcount')) === n, count);

test('50,000 pairs', async (t) => {
  const { url } = await serve(t, twoModels(t));
  const page = await browse(t, url);
  await finished(page);
  await page.waitForFunction(() => document.querySelector('.stat')?.textContent.includes('50,000 of 50,000'));
  assert.match(await page.locator('.verdict h1').innerText(), /1800/);
  await page.getByRole('button', { name: 'Expand all groups' }).click();
  await rowCount(page, 52_500);
  const most = await page.evaluate(async () => {
    const list = document.querySelector('.rows');
    let most = 0;
    for (let step = 0; step < 60; step++) {
      list.scrollTop = (list.scrollHeight * step) / 60;
      await new Promise((done) => requestAnimationFrame(done));
      most = Math.max(most, list.querySelectorAll('[role=row]').length);
    }
    return most;
  });
  assert.ok(most < 80, `${most} rows at once`);
  await page.locator('.rows').focus();
  await page.keyboard.press('End');
  await page.locator('.prow', { hasText: 'part_19' }).first().waitFor();
  await page.getByLabel('Filter pairs').fill('layers.1800. Δ>1');
  await page.waitForFunction(() => document.querySelector('[title="rows shown"]').textContent === '1');
});

test('the search box finds one of 50,000 pairs as it is typed', async (t) => {
  const { url } = await serve(t, twoModels(t));
  const page = await browse(t, url);
  await finished(page);
  await page.keyboard.press('Control+k');
  await page.locator('#hits li').first().waitFor();
  await page.keyboard.type('layers.1800.part_7');
  await page.locator('#hits li', { hasText: 'layers.1800.part_7' }).first().waitFor();
});

test('what a person opens while pairs are compared stays open', async (t) => {
  const { url } = await serve(t, twoModels(t));
  let letNewsCome;
  const newsMayCome = new Promise((done) => { letNewsCome = done; });
  const before = (page) => page.route('**/events*', async (route) => {
    await newsMayCome;
    await route.continue();
  });
  const page = await browse(t, url, { before });
  await page.getByRole('button', { name: 'Expand all groups' }).click();
  letNewsCome();
  await finished(page);
  // Longer than the page waits for more news.
  await page.waitForTimeout(500);
  await rowCount(page, 52_500);
});
