// What is typed goes where it belongs: notes, axes, ranges, searches; and one deed changes one thing.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { BUGGY, browse, finished, folder, REFERENCE, row, safetensors, serve } from './helper.mjs';

async function openPairOf(t, tensorsA, tensorsB, options) {
  const here = folder(t);
  const a = safetensors(path.join(here, 'a.safetensors'), tensorsA);
  const b = safetensors(path.join(here, 'b.safetensors'), tensorsB);
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url, options);
  await finished(page);
  await page.locator('.det h2').waitFor();
  return page;
}

const place = (page, key) => page.evaluate((name) => new URLSearchParams(location.hash.slice(1)).get(name), key);

test('a note and the axes take the focus; what is typed there is no command', async (t) => {
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  const page = await browse(t, url);
  await finished(page);
  const before = await place(page, 'p');
  await page.getByRole('button', { name: 'Note on this pair' }).click();
  await page.keyboard.type('jkmxu t');
  assert.equal(await page.getByLabel('Note', { exact: true }).inputValue(), 'jkmxu t');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Name the axes' }).click();
  await page.keyboard.press('End');
  await page.keyboard.type(' j');
  assert.match(await page.getByLabel('Axes of A and B').inputValue(), / j$/);
  assert.equal(await place(page, 'p'), before);
});

test('axes that do not fit are refused in place, and change no verdict', async (t) => {
  const values = Array.from({ length: 12 }, (_, i) => i);
  const page = await openPairOf(t, { w: [[3, 4], values] }, { w: [[3, 4], values.with(5, 9)] }, { allow: ['422', '400'] });
  const status = await page.locator('.det h2 .badge').first().innerText();
  await page.getByRole('button', { name: 'Name the axes' }).click();
  for (const text of ['i j k -> j i', 'i j -> (', 'i j -> j i']) {
    await page.getByLabel('Axes of A and B').fill(text);
    await page.keyboard.press('Enter');
    await page.locator('.editor [role=alert]').waitFor();
    assert.ok((await page.locator('.editor [role=alert]').innerText()).length > 10);
    assert.equal(await page.locator('.det h2 .badge').first().innerText(), status);
    await page.getByLabel('Axes of A and B').press('End');
    await page.keyboard.type(' ');
    await page.locator('.editor [role=alert]').waitFor({ state: 'detached' });
  }
  await page.getByLabel('Axes of A and B').fill('i j -> i j');
  await page.keyboard.press('Enter');
  await page.locator('.editor').waitFor({ state: 'detached' });
});

test('slices move the values; -50: counts from the end; a complaint goes with what caused it', async (t) => {
  const values = Array.from({ length: 200 * 100 }, (_, i) => Math.sin(i));
  const page = await openPairOf(t, { w: [[200, 100], values] }, { w: [[200, 100], values.with(7, 5)] });
  const rows = page.getByLabel('Rows shown of dimension 0, from:to');
  const first = () => page.locator('.vt tbody th').first().innerText();
  await rows.fill('-50:');
  await rows.press('Enter');
  await page.waitForFunction(() => document.querySelector('.vt tbody th')?.textContent === '150');
  assert.equal(await rows.inputValue(), '150:200');
  await rows.fill('200:100');
  await rows.press('Enter');
  await page.getByRole('alert').waitFor();
  assert.match(await page.getByRole('alert').innerText(), /not a range within 0:200/);
  await rows.press('Escape');
  await page.getByRole('alert').waitFor({ state: 'detached' });
  assert.equal(await rows.inputValue(), '150:200');
  assert.equal(await rows.getAttribute('aria-invalid'), 'false');
  assert.equal(await first(), '150');
});

test('the values follow the pointer on a map', async (t) => {
  const values = Array.from({ length: 200 * 100 }, (_, i) => Math.sin(i));
  const page = await openPairOf(t, { w: [[200, 100], values] }, { w: [[200, 100], values.with(7, 5)] });
  await page.waitForFunction(() => document.querySelector('[data-heat=d] canvas')?.dataset.level !== undefined);
  const box = await page.locator('[data-heat=d]').boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height * 0.9);
  await page.waitForFunction(() => Number(document.querySelector('.vt tbody th')?.textContent) > 150);
  await page.mouse.move(5, 5);
  await page.waitForFunction(() => Number(document.querySelector('.vt tbody th')?.textContent) < 20);
});

test('find tells how many there are, and takes 4:5 and 4.0..4.1', async (t) => {
  const values = Array.from({ length: 100 }, (_, i) => i / 10);
  const page = await openPairOf(t, { w: [[10, 10], values] }, { w: [[10, 10], values.with(7, 50)] });
  for (const [text, hits] of [['4:5', '11 hits'], ['4.0..4.1', '2 hits'], ['b: 50', '1 hit']]) {
    await page.keyboard.press('f');
    await page.getByLabel('Value', { exact: true }).fill(text);
    await page.keyboard.press('Enter');
    await page.locator('.banner', { hasText: hits }).waitFor();
  }
  await page.keyboard.press('f');
  await page.getByLabel('Value', { exact: true }).fill('what');
  await page.keyboard.press('Enter');
  await page.getByText('Not understood').waitFor();
  await page.keyboard.type('x');
  await page.getByText('Not understood').waitFor({ state: 'detached' });
});

test('unpairing one pair marks one; Undo brings it back as it was', async (t) => {
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  const page = await browse(t, url, { allow: ['409', '422'] });
  await finished(page);
  const marks = () => page.locator('.prow .tag[title="paired by hand"]').count();
  await page.keyboard.press('Shift+E');
  assert.equal(await marks(), 0);
  await page.keyboard.press('u');
  await page.locator('.tray', { hasText: 'post_attn' }).waitFor();
  await finished(page);
  assert.equal(await page.locator('.orph').count(), 2);
  assert.equal(await marks(), 0);
  assert.equal(await page.locator('.stat', { hasText: 'saved pairing' }).count(), 0);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.locator('.tray').waitFor({ state: 'detached' });
  assert.equal(await marks(), 0);
});

test('a menu for a row and for an element, also by keyboard', async (t) => {
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  const page = await browse(t, url);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await finished(page);
  await row(page, 'post_attn').first().click({ button: 'right' });
  const menu = page.getByRole('menu');
  await menu.waitFor();
  assert.match(await menu.innerText(), /Open at its largest difference[\s\S]*Copy the name in A[\s\S]*Unpair/);
  await menu.getByRole('menuitem', { name: 'Copy the name in A' }).click();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /_post_attn$/);
  await page.locator('.vt td[data-side=a]').first().click({ button: 'right' });
  await menu.getByRole('menuitem', { name: 'Copy the index' }).click();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^\d+, \d+$/);
  await page.locator('[data-heat=d]').click({ button: 'right' });
  await menu.getByRole('menuitem', { name: 'Copy the index' }).waitFor();
  await page.keyboard.press('Escape');
  await menu.waitFor({ state: 'detached' });
  await page.locator('.rows').focus();
  await page.keyboard.press('Shift+F10');
  await menu.waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Escape');
  await menu.waitFor({ state: 'detached' });
});
