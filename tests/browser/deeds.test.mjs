// What people do with a pair beside looking: copy, import, follow an axis; and every key of the map.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { BUGGY, browse, finished, folder, REFERENCE, row, safetensors, serve } from './helper.mjs';

const hashOf = (page, name) =>
  page.evaluate((each) => new URLSearchParams(location.hash.slice(1)).get(each), name);

const hashChanges = (page, name, before) => page.waitForFunction(
  ([each, old]) => new URLSearchParams(location.hash.slice(1)).get(each) !== old, [name, before]);

test('pairings are imported; those that do not fit any more are named and left out', async (t) => {
  const here = folder(t);
  const values = [[2], [1, 2]];
  const a = safetensors(path.join(here, 'a.safetensors'), { left: values, right: [[2], [3, 4]] });
  const b = safetensors(path.join(here, 'b.safetensors'), { north: values, south: [[2], [3, 4]] });
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url, { allow: ['409'] });
  await finished(page);
  const file = (name, pairs) => {
    const fingerprint = 'of other files';
    writeFileSync(path.join(here, name), JSON.stringify({ fingerprint, pairs }));
    return path.join(here, name);
  };
  const importFile = async (name) => {
    await page.getByRole('button', { name: 'Matching and pairings' }).click();
    await page.getByLabel('Import…').setInputFiles(name);
  };
  await importFile(file('bad.json', [{ a: 'left', b: 'gone' }]));
  await page.locator('.banner', { hasText: '1 pairing no longer fits: left ↔ gone' }).waitFor();
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await importFile(file('one.json', [{ a: 'left', b: 'south' }]));
  await page.locator('.banner', { hasText: '1 pairing imported' }).waitFor();
  await importFile(file('good.json', [{ a: 'left', b: 'south' }, { a: 'right', b: 'north' }]));
  await page.locator('.banner', { hasText: '2 pairings imported' }).waitFor();
  await page.locator('.stat', { hasText: '2 saved pairings' }).waitFor();

  // The file changes: what is gone from it is shown, and the rest still holds.
  safetensors(b, { north: values, east: [[2], [3, 4]] });
  await page.keyboard.press('r');
  await page.locator('.stat', { hasText: '1 saved pairing' }).waitFor();
  await page.getByRole('button', { name: 'Matching and pairings' }).click();
  const stale = page.getByRole('dialog').locator('.stalelist').first();
  await stale.getByText('1 no longer fit and are left out').waitFor();
  assert.match(await stale.innerText(), /left ↔ south/);
});

test('values and Python that loads them are copied', async (t) => {
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  const page = await browse(t, url);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await finished(page);
  await page.keyboard.press('m');
  const copied = async (key, said) => {
    await page.keyboard.press(key);
    await page.locator('.banner', { hasText: said }).waitFor();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  assert.match(await copied('y', 'Copied the values'), /^-?[\d.e-]+\t-?[\d.e-]+$/);
  const code = await copied('Shift+Y', 'Python');
  assert.match(code, /\na = load\(".*reference\.zip", "1_post_attn"\)\na = a\.squeeze\(0\)\nb = load\(/);
});

test('the KL divergence of logits by position', async (t) => {
  const here = folder(t);
  const logits = (last) => [[3, 32], Array.from({ length: 96 }, (_, i) => (i === 95 ? last : i % 7))];
  const left = safetensors(path.join(here, 'a.safetensors'), { logits: logits(1), w: [[2], [1, 2]] });
  const right = safetensors(path.join(here, 'b.safetensors'), { logits: logits(9), w: [[2], [1, 2]] });
  const { url } = await serve(t, [left, right]);
  const page = await browse(t, url);
  await finished(page);
  await row(page, 'logits').click();
  await page.getByRole('button', { name: 'By axis' }).click();
  const words = page.locator('.prof', { hasText: 'KL by position' });
  await words.waitFor();
  // Only the last of three positions predicts another token.
  assert.match(await words.innerText(), /another top token at 1 of 3/);
  assert.equal(await words.locator('canvas').count(), 1);
  await row(page, 'w').click();
  await words.waitFor({ state: 'detached' });
});

test('the error along each axis, and to its worst index', async (t) => {
  const here = folder(t);
  const zeros = Array(24).fill(0);
  const a = safetensors(path.join(here, 'a.safetensors'), { w: [[2, 3, 4], zeros] });
  const b = safetensors(path.join(here, 'b.safetensors'), { w: [[2, 3, 4], zeros.with(1 * 12 + 2 * 4 + 3, 5)] });
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url);
  await finished(page);
  await page.getByRole('button', { name: 'By axis' }).click();
  await page.locator('.prof').nth(2).waitFor();
  assert.deepEqual(await page.locator('.prof .lnk').allInnerTexts(), ['1', '2', '3']);
  for (const link of await page.locator('.prof .lnk').all()) await link.click();
  await page.waitForFunction(() => new URLSearchParams(location.hash.slice(1)).get('at') === '1,2,3');
});

test('a coarse tile is rough at first; a tile of other values is asked for again', async (t) => {
  const here = folder(t);
  const line = Array(60_000).fill(1);
  const a = safetensors(path.join(here, 'a.safetensors'), { line: [[60_000], line] });
  const b = safetensors(path.join(here, 'b.safetensors'), { line: [[60_000], line.with(7, 2)] });
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url, { allow: ['409'] });
  const tiles = [];
  page.on('response', (answer) => {
    if (answer.url().includes('/tile/d/')) tiles.push([answer.status(), answer.headers()['x-rough']]);
  });
  let refused = 0;
  await page.route('**/tile/**', (route) => {
    if (refused++ > 0) return route.continue();
    return route.fulfill({ status: 409, contentType: 'application/problem+json', body: '{"status":409}' });
  });
  await page.reload();
  await finished(page);
  await page.waitForFunction(() => document.querySelector('[data-heat=d] canvas')?.dataset.level !== undefined);
  await page.waitForFunction(() => document.querySelectorAll('.hm.rough').length === 0);
  assert.ok(refused > 1);
  const good = tiles.filter(([status]) => status === 200);
  assert.deepEqual(good.at(-1), [200, undefined], 'the last one is exact');
});

test('every key does what the overlay says', async (t) => {
  const here = folder(t);
  const size = 4 * 30 * 40;
  const values = Array.from({ length: size }, (_, i) => Math.sin(i));
  const others = values.map((value, i) => (i % 700 === 5 ? value + 1 : value)).with(30 * 40 + 5, 9);
  const tensors = (last) => Object.fromEntries([0, 1, 2].flatMap((layer) =>
    ['query', 'key'].map((stage) => [`${layer}_${stage}`, [[4, 30, 40], layer === 0 ? values : last]])));
  const a = safetensors(path.join(here, 'a.safetensors'), tensors(values));
  const b = safetensors(path.join(here, 'b.safetensors'), tensors(others));
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url, { allow: ['409'] });
  await finished(page);
  await page.locator('.vt td.cur').first().waitFor();
  const press = (key) => page.keyboard.press(key);
  /** The part of the address that a key changes. */
  const moves = async (key, part) => {
    const before = await hashOf(page, part);
    await press(key);
    await hashChanges(page, part, before);
  };
  const dialog = async (key, name) => {
    await press(key);
    await page.getByRole('dialog', { name }).waitFor();
    await press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  };
  for (const key of ['j', 'k', 'Shift+J', 'Shift+K']) await moves(key, 'p');
  // The last of them is there when the address says where its cursor is.
  await hashChanges(page, 'at', null);
  for (const key of ['n', 'Shift+N', 'n', 'm', ']', '[', '}', '{']) await moves(key, 'at');
  await dialog('g', /index/i);
  await dialog('f', /find/i);
  await dialog('Control+k', 'Search');
  await dialog('>', 'Search');
  await dialog('?', 'Keys');
  for (const [key, name] of [['1', '1D'], ['3', 'Flat'], ['2', '2D']]) {
    await press(key);
    await page.locator('.vals button[aria-pressed=true]', { hasText: name }).waitFor();
  }
  for (const key of ['w', 'd', 'a', 'w', 's', ')', 'w', '0']) await moves(key, 'z');
  await page.locator('[data-heat=a]').focus();
  for (const key of ['w', 'ArrowDown', 'ArrowUp', 'ArrowRight', 'ArrowLeft']) await moves(key, 'z');
  const scale = page.getByLabel('Scale of differences');
  const before = await scale.inputValue();
  await press('l');
  assert.notEqual(await scale.inputValue(), before);
  await press('t');
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark');
  await press('Enter');
  await page.locator('.tip').waitFor();
  await press('Escape');
  const rows = () => page.locator('.prow').count();
  await press('Shift+C');
  assert.equal(await rows(), 0);
  await press('Shift+E');
  assert.equal(await rows(), 6);
  await page.locator('.rows').focus();
  await press('ArrowDown');
  await press('c');
  assert.equal(await rows(), 4);
  await press('e');
  assert.equal(await rows(), 6);
  await press('/');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'filter');
  await press('Escape');
  await press('x');
  await page.waitForFunction(() => document.title.startsWith('b.safetensors vs a.safetensors'));
});
