// A person who is quicker than the server: what was asked for is what happens, in that order.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { BUGGY, browse, finished, folder, REFERENCE, safetensors, serve } from './helper.mjs';

const SIZE = 8;
const NAMES = ['0_query', '0_key', '0_value', '0_mlp'];
const atIs = (page, wanted) => page.waitForFunction(
  (text) => new URLSearchParams(location.hash.slice(1)).get('at') === text, wanted);
const openIs = (page, name) =>
  page.waitForFunction((wanted) => document.querySelector('.det h2')?.textContent.includes(wanted), name);

/** Tensors of one shape; the k-th differs at [k, k] only. */
async function openFour(t) {
  const here = folder(t);
  const zeros = Array(SIZE * SIZE).fill(0);
  const model = (file, change) => safetensors(path.join(here, file),
    Object.fromEntries(NAMES.map((name, k) => [name, [[SIZE, SIZE], change(k)]])));
  const a = model('a.safetensors', () => zeros);
  const b = model('b.safetensors', (k) => zeros.with(k * SIZE + k, 1));
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url, { allow: ['ERR_FAILED'] });
  await finished(page);
  await openIs(page, 'query');
  return page;
}

const delay = (page, pattern, ms) => page.route(pattern, async (route) => {
  await new Promise((done) => setTimeout(done, ms));
  await route.continue().catch(() => {}); // The page may be gone.
});

test('a jump waits for the pair that was opened before it', async (t) => {
  const page = await openFour(t);
  await delay(page, /\/pairs\/\d+\?run=/, 400);
  await page.keyboard.press('j');
  await page.keyboard.press('m');
  await atIs(page, '1,1');
  await openIs(page, 'key');
  await page.keyboard.press('j');
  await page.keyboard.press('n');
  await atIs(page, '2,2');
});

test('rows moved in quick succession are all kept', async (t) => {
  const page = await openFour(t);
  await page.getByLabel('Group by').selectOption('none');
  await page.locator('.prow').first().click();
  await page.locator('.rows').focus();
  const names = () => page.locator('.prow .nm').allInnerTexts();
  await delay(page, '**/order*', 300);
  const toldOfAll = page.waitForResponse((answer) => answer.url().includes('/order') &&
    answer.request().postDataJSON().ids.join() === '1,2,3,0');
  for (let i = 0; i < 3; i++) await page.keyboard.press('Alt+ArrowDown');
  const wanted = ['0_key', '0_value', '0_mlp', '0_query'];
  assert.deepEqual(await names(), wanted);
  await toldOfAll;
  await page.reload();
  await finished(page);
  await page.locator('.prow').nth(3).waitFor();
  assert.deepEqual(await names(), wanted);
});

test('back takes one step back, and forward one forward', async (t) => {
  const page = await openFour(t);
  for (const name of ['key', 'value']) {
    await page.keyboard.press('j');
    await openIs(page, name);
    await page.keyboard.press('m');
    const wanted = NAMES.findIndex((each) => each.includes(name));
    await atIs(page, `${wanted},${wanted}`);
  }
  await page.goBack();
  await openIs(page, 'key');
  await atIs(page, '1,1');
  await page.goBack();
  await openIs(page, 'query');
  await page.goForward();
  await openIs(page, 'key');
  await atIs(page, '1,1');
});

test('a person who is quicker than the first address has all steps in the history', async (t) => {
  const page = await openFour(t);
  await delay(page, /\/pairs\/\d+\?run=/, 300);
  for (let i = 0; i < 3; i++) await page.keyboard.press('j');
  await openIs(page, 'mlp');
  for (const name of ['value', 'key', 'query']) {
    await page.goBack();
    await openIs(page, name);
  }
  await page.goForward();
  await openIs(page, 'key');
});

test('where a person was last is kept, also when another pair is opened at once', async (t) => {
  const page = await openFour(t);
  await page.keyboard.press('}');
  await page.keyboard.press('j');
  await openIs(page, 'key');
  await page.goBack();
  await openIs(page, 'query');
  await atIs(page, '7,0');
});

test('another address of the open pair moves the cursor, and only what a person did is a step', async (t) => {
  const page = await openFour(t);
  await atIs(page, '0,0');
  const length = await page.evaluate(() => history.length);
  await Promise.all([
    page.waitForResponse(/\/pairs\/0\?run=/),
    page.evaluate(() => { location.hash = location.hash.replace('at=0,0', 'at=3,4'); }),
  ]);
  await page.waitForFunction(() => document.querySelector('.vt td.cur') !== null);
  await page.keyboard.press('}');
  await atIs(page, '7,4');
  assert.equal(await page.evaluate(() => history.length), length + 1, 'the address that was typed');
  await page.locator('.logo').click();
  await page.getByRole('heading', { name: 'Recent' }).waitFor();
  await page.goBack();
  await openIs(page, 'query');
  await atIs(page, '7,4');
});

test('what is being typed is not written over by news', async (t) => {
  const page = await openFour(t);
  await page.locator('.hm canvas').first().waitFor();
  const box = page.getByLabel(/Rows shown of dimension 0/);
  await box.fill('-3:');
  await page.locator('.hm canvas').first().hover();
  await page.mouse.wheel(0, -300);
  await page.waitForFunction(() => new URLSearchParams(location.hash.slice(1)).has('z'));
  assert.equal(await box.inputValue(), '-3:');
  await box.press('Enter');
  await page.waitForFunction(() => new URLSearchParams(location.hash.slice(1)).get('z')?.startsWith('5,8,'));
});

test('a note belongs to the pair that it was begun on', async (t) => {
  const page = await openFour(t);
  await page.getByRole('button', { name: 'Note on this pair' }).click();
  await page.keyboard.type('jump of query');
  await page.locator('.prow', { hasText: 'value' }).click();
  await openIs(page, 'value');
  assert.equal(await page.getByLabel('Note', { exact: true }).count(), 0);
  await page.locator('.prow', { hasText: 'query' }).click();
  await openIs(page, 'query');
  assert.equal(await page.getByLabel('Note', { exact: true }).inputValue(), 'jump of query');
});

test('a page that is read again at once still has its token', async (t) => {
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  // What the page puts off has not happened yet.
  const before = (page) => page.addInitScript(() => {
    const real = window.setTimeout;
    window.setTimeout = (run, ms = 0) => real(run, ms + 3000);
  });
  const page = await browse(t, url, { before });
  await page.waitForFunction(() => !location.hash.includes('t='));
  await page.reload();
  await finished(page);
});

test('a dialog does not move when more of it comes', async (t) => {
  const page = await openFour(t);
  await delay(page, '**/pairings', 400);
  await page.getByRole('button', { name: 'Matching and pairings' }).click();
  const place = () => page.getByRole('dialog').getByRole('checkbox').first().boundingBox();
  const before = await place();
  await page.getByRole('heading', { name: '0 pairs made by hand' }).waitFor();
  assert.deepEqual(await place(), before);
});

test('what is below the maps stays where it is when they come', async (t) => {
  const page = await openFour(t);
  await page.route('**/pyramid*', (route) => new Promise((done) => setTimeout(done, 600)).then(() => route.continue()));
  await page.reload();
  await page.locator('.vals td').first().waitFor();
  const place = () => page.locator('.vals').boundingBox();
  const before = await place();
  await page.locator('.hm canvas').first().waitFor();
  assert.deepEqual(await place(), before);
});

test('the server away for a moment is said, and what a person opened is still open', async (t) => {
  const page = await openFour(t);
  await page.getByRole('button', { name: 'Collapse all groups' }).click();
  await page.route('**/api/**', (route) => route.abort());
  const banner = page.locator('.banner', { hasText: 'The server does not answer' });
  // A request that was on its way before may still be answered: go back and forth until one fails.
  for (let look = 0; look < 10 && !(await banner.isVisible()); look++) {
    if (look > 0) await page.keyboard.press('k');
    await page.keyboard.press('j');
    await banner.waitFor({ timeout: 5000 }).catch(() => {});
  }
  await banner.waitFor();
  await page.unroute('**/api/**');
  await page.locator('.banner', { hasText: 'The server does not answer' }).waitFor({ state: 'detached' });
  await openIs(page, 'key');
});
