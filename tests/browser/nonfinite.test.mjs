// NaN and infinities that only one side has: the worst of all, wherever the page shows them.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { browse, finished, folder, metric, row, safetensors, serve } from './helper.mjs';

const INF = Number.POSITIVE_INFINITY;

async function openBoth(t, a, b) {
  const here = folder(t);
  const left = safetensors(path.join(here, 'a.safetensors'), a);
  const right = safetensors(path.join(here, 'b.safetensors'), b);
  const { url } = await serve(t, [left, right]);
  const page = await browse(t, url);
  await finished(page);
  await page.locator('.det h2').waitFor();
  return page;
}

const opened = (page, name) =>
  page.waitForFunction((each) => document.querySelector('.det h2')?.textContent.startsWith(each), name);

const at = (page, place) =>
  page.waitForFunction((each) => new URLSearchParams(location.hash.slice(1)).get('at') === each, place);

test('a NaN on one side is the worst, counted, sorted first and gone to', async (t) => {
  const page = await openBoth(t,
    { far: [[2, 2], [1, 2, 3, 4]], lost: [[2, 4], [1, 2, NaN, 4, INF, 6, 7, 8]] },
    { far: [[2, 2], [1, 2, 3, 900]], lost: [[2, 4], [1, 2, 3, NaN, -INF, 6, 7, 8]] });
  await row(page, 'lost').click();
  await opened(page, 'lost');
  assert.match(await metric(page, 'max |Δ|'), /^NaN\/Inf\s*@ 0, 2$/);
  assert.equal(await metric(page, 'cosine'), '–');
  assert.match(await metric(page, 'beyond tolerance'), /^37\.5 %\s*3$/);
  assert.match(await metric(page, 'NaN, Inf in A'), /^1, 1\s*· 1, 1$/);
  assert.match(await page.locator('.finding').innerText(),
    /NaN\/Inf mismatch at 3 elements: A has 1 NaN and 1 Inf, B has 1 NaN and 1 Inf/);
  assert.doesNotMatch(await page.locator('.finding').innerText(), /relative error/, 'of the rest, which explains nothing');
  await page.keyboard.press('m');
  await at(page, '0,2');
  for (const column of ['max |Δ| / tol', 'cosine']) {
    await page.getByRole('button', { name: column, exact: true }).click();
    await page.waitForFunction(() => document.querySelector('.prow .nm')?.textContent === 'lost');
  }
});

test('each pair opens on its worst element until someone chooses a place', async (t) => {
  const page = await openBoth(t,
    { first: [[2, 3], [1, 2, 3, 4, 5, 6]], second: [[2, 3], [1, 2, 3, 4, 5, 6]] },
    { first: [[2, 3], [1, 9, 3, 4, 5, 6]], second: [[2, 3], [1, 2, 3, 4, 5, 9]] });
  await row(page, 'first').click();
  await at(page, '0,1');
  await row(page, 'second').click();
  await at(page, '1,2');
  assert.equal(await page.getByText('Carried here').count(), 0, 'nothing is known of inputs');
});

test('a note is typed where it belongs', async (t) => {
  const page = await openBoth(t, { w: [[2], [1, 2]] }, { w: [[2], [1, 3]] });
  await page.getByRole('button', { name: 'Note on this pair' }).click();
  await page.keyboard.type('jump');
  assert.equal(await page.getByLabel('Note', { exact: true }).inputValue(), 'jump');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Name the axes' }).click();
  assert.equal(await page.getByLabel('Axes of A and B').evaluate((box) => box === document.activeElement), true);
});
