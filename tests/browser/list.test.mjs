// The list: filters, groups, order, pairing by hand, notes, export; and that they last.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { BUGGY, browse, finished, folder, REFERENCE, report, row, safetensors, serve } from './helper.mjs';

const wanted = report(REFERENCE, BUGGY);

async function openDemo(t, state = folder(t)) {
  const server = await serve(t, [REFERENCE, BUGGY], { state });
  const page = await browse(t, server.url, { allow: ['ERR_', '409'] });
  await finished(page);
  return { page, server };
}

const shown = async (page) => Number(await page.locator('[title="rows shown"]').innerText());
const names = (page) => page.locator('.prow .nm').allInnerTexts();

test('filters by word, regex, size of difference, type and shape', async (t) => {
  const { page } = await openDemo(t);
  const expected = (test) => wanted.pairs.filter(test).length;
  const cases = [
    ['query_final', expected((pair) => pair.name_a.includes('query_final'))],
    ['/^1_.*mlp$/', expected((pair) => /^1_.*mlp$/.test(pair.name_a))],
    ['Δ>1e-3', expected((pair) => pair.diff?.max_abs > 1e-3)],
    ['dtype:bf16', expected((pair) => pair.dtype_a === 'bf16' || pair.dtype_b === 'bf16')],
    ['shape:…×128', expected((pair) => pair.shape_a.at(-1) === 128 || pair.shape_b.at(-1) === 128)],
  ];
  for (const [text, count] of cases) {
    await page.getByLabel('Filter pairs').fill(text);
    assert.equal(await shown(page), count, text);
  }
  await page.getByLabel('Filter pairs').fill('/(/');
  assert.equal(await page.getByLabel('Filter pairs').getAttribute('aria-invalid'), 'true');
  await page.getByLabel('Filter pairs').fill('');
  await page.locator('.chip.bad').click({ modifiers: ['Alt'] });
  assert.equal(await shown(page), wanted.summary.different);
});

test('a long name keeps its last part', async (t) => {
  const here = folder(t);
  const stem = (layer) => `decoder.layers.${layer}.self_attention.a_long_name_of_a_submodule.query_key_value_projection`;
  const values = Array.from({ length: 4 }, (_, i) => i);
  const tensors = Object.fromEntries([0, 1].flatMap((layer) =>
    ['weight', 'lora_A'].map((last) => [`${stem(layer)}.${last}`, [[4], values]])));
  const file = (name) => safetensors(path.join(here, name), tensors);
  const { url } = await serve(t, [file('a.safetensors'), file('b.safetensors')]);
  const page = await browse(t, url);
  await finished(page);
  const ends = page.locator('.prow .nm .last');
  assert.deepEqual(await ends.allInnerTexts(), ['.weight', '.lora_A', '.weight', '.lora_A']);
  const cell = await page.locator('.prow .nm').first().boundingBox();
  const end = await ends.first().boundingBox();
  assert.ok(end.width > 20 && end.x + end.width <= cell.x + cell.width + 1, 'the last part is inside its cell');
});

test('groups and sorts', async (t) => {
  const { page } = await openDemo(t);
  await page.getByLabel('Group by').selectOption('none');
  await page.getByLabel('Sort by').selectOption('difference');
  const first = (await names(page))[0];
  const ratios = await page.locator('.prow .lbar .num').allInnerTexts();
  assert.ok(wanted.pairs.some((pair) => pair.name_a === first && pair.status === 'different'), first);
  assert.ok(ratios.length > 5);
  await page.getByLabel('Sort by').selectOption('name');
  assert.match((await names(page))[0], /^0_/);
  await page.getByLabel('Group by').selectOption('similarity');
  await page.locator('.grow').first().waitFor();
});

test('a row is moved by keyboard and by mouse, and stays there', async (t) => {
  const { page, server } = await openDemo(t);
  await page.getByLabel('Group by').selectOption('none');
  const before = await names(page);
  await page.locator('.prow').nth(0).click();
  await page.locator('.rows').focus();
  const told = () => page.waitForResponse((answer) => answer.url().includes('/order'));
  await Promise.all([told(), page.keyboard.press('Alt+ArrowDown')]);
  await page.waitForFunction((name) => document.querySelectorAll('.prow .nm')[1].textContent === name, before[0]);
  const from = await page.locator('.prow').nth(4).boundingBox();
  const to = await page.locator('.prow').nth(2).boundingBox();
  await page.mouse.move(from.x + 80, from.y + 12);
  await page.mouse.down();
  await page.mouse.move(from.x + 80, from.y - 10, { steps: 4 });
  await page.mouse.move(to.x + 80, to.y + 4, { steps: 4 });
  await page.locator('.ghost').waitFor();
  await Promise.all([told(), page.mouse.up()]);
  await page.waitForFunction((name) => document.querySelectorAll('.prow .nm')[2].textContent === name, before[4]);
  const now = (await names(page)).slice(0, 6);
  await server.stop();
  const again = await serve(t, [], { state: server.state });
  await page.goto(again.url);
  await page.locator('.recent tbody tr').first().click();
  await finished(page);
  await page.getByLabel('Group by').selectOption('none');
  assert.deepEqual((await names(page)).slice(0, 6), now);
});

/** Two files whose odd names no strategy can bring together. */
function strangers(t) {
  const here = folder(t);
  const noise = (seed) => Array.from({ length: 12 }, (_, i) => Math.sin(seed * 97 + i * i));
  const a = safetensors(path.join(here, 'a.safetensors'), { same: [[4], [1, 2, 3, 4]], alpha: [[3, 4], noise(1)], gamma: [[2, 2], [1, 2, 3, 4]] });
  const b = safetensors(path.join(here, 'b.safetensors'), { same: [[4], [1, 2, 3, 4]], zulu9: [[12], noise(2)], w: [[5], [1, 2, 3, 4, 5]] });
  return [a, b];
}

test('two tensors are paired by hand, by click and by drag, and still are after a restart', async (t) => {
  const [a, b] = strangers(t);
  const server = await serve(t, [a, b]);
  const page = await browse(t, server.url, { allow: ['ERR_', '409'] });
  await finished(page);
  const tray = page.locator('.tray');
  await tray.locator('[data-name=alpha]').click();
  await tray.locator('[data-name=zulu9]').click();
  await page.keyboard.press('p');
  await page.waitForFunction(() => !document.querySelector('.tray [data-name=alpha]'));
  await page.getByText('1 saved pairing').waitFor();
  const from = await tray.locator('[data-name=gamma]').boundingBox();
  const to = await tray.locator('[data-name=w]').boundingBox();
  await page.mouse.move(from.x + 60, from.y + 10);
  await page.mouse.down();
  await page.mouse.move(to.x + 60, to.y + 10, { steps: 6 });
  await page.mouse.up();
  await page.getByText('2 saved pairings').waitFor();
  await server.stop();
  const again = await serve(t, [], { state: server.state });
  await page.goto(again.url);
  await page.locator('.recent tbody tr').first().click();
  await page.getByText('2 saved pairings').waitFor();
  await page.getByRole('button', { name: 'Matching and pairings' }).click();
  assert.match(await page.getByRole('region', { name: 'Pairs made by hand' }).innerText(), /alpha[\s\S]*zulu9/);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('region', { name: 'Pairs made by hand' }).getByRole('button', { name: 'Export' }).click(),
  ]);
  const saved = JSON.parse(readFileSync(await download.path(), 'utf8'));
  assert.equal(saved.pairs.length, 2);
});

test('a pair is taken apart, a note is kept, results are exported', async (t) => {
  const { page } = await openDemo(t);
  await page.locator('.det h2').waitFor();
  await page.getByRole('button', { name: 'Note on this pair' }).click();
  await page.getByLabel('Note', { exact: true }).fill('look at <b>this</b>');
  await page.getByRole('button', { name: 'Save note' }).click();
  await page.locator('.prow.open .tag[title="has a note"]').waitFor();
  await page.getByRole('button', { name: 'Export' }).click();
  await page.getByRole('dialog').locator('.exp b').first().waitFor();
  const formats = await page.getByRole('dialog').locator('.exp b').allInnerTexts();
  assert.ok(formats.includes('JSON') && formats.includes('CSV'), formats.join());
  await page.keyboard.press('Escape');
  for (const format of formats) {
    await page.getByRole('button', { name: 'Export' }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('dialog').getByRole('button', { name: format }).click(),
    ]);
    const text = readFileSync(await download.path(), 'utf8');
    assert.ok(text.includes(wanted.pairs.at(-1).name_a), format);
  }
  await row(page, wanted.pairs.find((pair) => pair.index === wanted.first_divergence.pair).stage).click();
  await page.keyboard.press('u');
  await page.locator('.tray').waitFor();
  assert.equal(await page.locator('.tray .orph').count(), 2);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.locator('.tray').waitFor({ state: 'detached' });
});

test('strategies, threshold and a regex for names are set in the page and run again', async (t) => {
  const here = folder(t);
  const a = safetensors(path.join(here, 'a.safetensors'), { 'L0-query': [[2], [1, 2]], 'L1-query': [[2], [3, 4]] });
  const b = safetensors(path.join(here, 'b.safetensors'), { 'step L1-query v2': [[2], [3, 4]], 'step L0-query v2': [[2], [1, 9]] });
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url, { allow: ['400', '409', '422'] });
  await finished(page);
  const settings = async (strategies, regex) => {
    await page.getByRole('button', { name: 'Matching and pairings' }).click();
    const dialog = page.getByRole('dialog');
    for (const box of await dialog.getByRole('checkbox').all())
      if ((await box.getAttribute('name')) === 'strategy')
        await box.setChecked(strategies.includes(await box.getAttribute('value')));
    await dialog.getByLabel('Regex').fill(regex);
    await dialog.getByRole('button', { name: 'Pair again' }).click();
  };
  await settings(['exact'], '');
  await page.waitForFunction(() => document.querySelectorAll('.tray .orph').length === 4);
  await settings(['layer-stage'], 'L(?<layer>[0-9]+)-(?<stage>[a-z]+)');
  await page.locator('.tray').waitFor({ state: 'detached' });
  await finished(page);
  assert.match(await page.locator('.verdict h1').innerText(), /layer 0/);
  await settings(['layer-stage'], '(?<layer>');
  await page.locator('.banner', { hasText: 'match.regex' }).waitFor();
});
