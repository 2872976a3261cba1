// Around the pair: small screens, links, a server that goes away, files that change, strips, parts.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { axe, BUGGY, browse, data, finished, folder, metric, REFERENCE, safetensors, serve } from './helper.mjs';

const hash = (page, key) => page.evaluate((name) => new URLSearchParams(location.hash.slice(1)).get(name), key);

function sides(t, tensorsA, tensorsB) {
  const here = folder(t);
  return [
    safetensors(path.join(here, 'a.safetensors'), tensorsA),
    safetensors(path.join(here, 'b.safetensors'), tensorsB),
  ];
}

test('under 900 px the list is a drawer, and the chart is there', async (t) => {
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  const page = await browse(t, url, { size: [800, 900] });
  await finished(page);
  await page.locator('.chart canvas').first().waitFor();
  assert.ok((await page.locator('.chart .plot').boundingBox()).height > 60);
  assert.equal(await page.locator('.side-list').isVisible(), false);
  await page.getByRole('button', { name: 'List of pairs' }).click();
  await page.locator('.side-list').waitFor();
  await axe(page, 'drawer');
  const before = await hash(page, 'p');
  await page.locator('.prow:not(.open)').first().click();
  await page.locator('.side-list').waitFor({ state: 'hidden' });
  await page.waitForFunction((was) => new URLSearchParams(location.hash.slice(1)).get('p') !== was, before);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  assert.equal(wide, false, 'nothing sticks out sideways');
});

test('the address holds axes, view and cursor; an old link works after a restart', async (t) => {
  const values = Array.from({ length: 60 }, (_, i) => i);
  const [a, b] = sides(t, { w: [[3, 4, 5], values] }, { w: [[3, 4, 5], values.with(17, 99)] });
  const one = await serve(t, [a, b]);
  const page = await browse(t, one.url, { allow: ['ERR_CONNECTION'] });
  await finished(page);
  await page.getByRole('button', { name: /Dimension 0 is fixed; make it rows/ }).click();
  await page.keyboard.press('1');
  await page.waitForFunction(() => location.hash.includes('plane=0,2') && location.hash.includes('v=1d'));
  const link = await page.evaluate(() => location.href);
  const token = new URL(one.url).hash.match(/t=([^&]+)/)[1];
  await one.stop();
  const port = new URL(one.url).port;
  const two = await serve(t, [a, b], { state: one.state, port });
  assert.ok(two.url.includes(`t=${token}`), 'the token is kept');
  const other = await browse(t, link.replace('#', `#t=${token}&`).replace(new URL(one.url).host, new URL(two.url).host));
  await other.locator('.v1').waitFor();
  await other.getByRole('button', { name: /Dimension 0 is rows/ }).waitFor();
});

test('while the server is away, nothing claims to be what it is not', async (t) => {
  const one = await serve(t, [REFERENCE, BUGGY]);
  const page = await browse(t, one.url, { allow: ['ERR_CONNECTION', 'ERR_EMPTY'] });
  await finished(page);
  const name = await page.locator('.det h2').innerText();
  await one.stop();
  await page.keyboard.press('j');
  await page.getByText('The server does not answer; this pair was not loaded yet.').waitFor();
  assert.equal(await page.locator('.det h2').count(), 0, 'the numbers of another pair are gone');
  await page.locator('.banner', { hasText: 'does not answer' }).waitFor();
  await page.keyboard.press('k');
  await serve(t, [], { state: one.state, port: new URL(one.url).port });
  await page.locator('.banner', { hasText: 'does not answer' }).waitFor({ state: 'detached' });
  await page.waitForFunction((was) => document.querySelector('.det h2')?.innerText === was, name);
});

test('a file that changes is said, and read again by R', async (t) => {
  const values = [1, 2, 3, 4];
  const [a, b] = sides(t, { w: [[4], values] }, { w: [[4], values] });
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url, { allow: ['409'] }); // What it asks for once the file is another.
  await finished(page);
  assert.match(await page.locator('.verdict h1').innerText(), /Identical/);
  safetensors(b, { w: [[4], [1, 2, 3, 9]] });
  await page.locator('.banner', { hasText: 'B changed on disk: press R' }).waitFor();
  assert.match(await page.locator('.verdict h1').innerText(), /Identical/);
  await page.keyboard.press('r');
  await page.locator('.verdict h1', { hasText: /differ|Diverges|changed/ }).waitFor();
});

test('with --watch it compares again by itself', async (t) => {
  const values = [1, 2, 3, 4];
  const [a, b] = sides(t, { w: [[4], values] }, { w: [[4], values] });
  const { url } = await serve(t, [a, b, '--watch']);
  const page = await browse(t, url, { allow: ['409'] });
  await finished(page);
  safetensors(b, { w: [[4], [1, 2, 3, 9]] });
  await page.locator('.verdict h1', { hasText: /differ|Diverges|changed/ }).waitFor();
});

test('dims have names, heads and tokens a strip each', async (t) => {
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  const page = await browse(t, url);
  await finished(page);
  assert.match(await page.locator('.dims').innerText(), /token[\s\S]*hidden/);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('2_query_final');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.det h2')?.textContent.includes('query_final'));
  await page.locator('.dims', { hasText: 'head' }).waitFor();
  const strips = page.getByRole('region', { name: 'Error by head and token' });
  await strips.locator('.strip').nth(1).waitFor();
  assert.match(await strips.innerText(), /head[\s\S]*token/);
  const worst = await strips.locator('.strip', { hasText: 'head' }).getByRole('button').innerText();
  await strips.locator('.strip', { hasText: 'head' }).getByRole('button').click();
  await page.waitForFunction((at) => new URLSearchParams(location.hash.slice(1)).get('at').startsWith(`${at},`), worst.replace('worst: ', ''));
});

test('module paths are grouped by layer, and the tree follows the open pair', async (t) => {
  const tensors = (last) => Object.fromEntries([0, 1, 2, 3].flatMap((layer) =>
    ['attn.c_attn', 'attn.c_proj', 'mlp.c_fc', 'mlp.c_proj', 'ln_1', 'ln_2', 'attn', 'mlp'].map((part, i) =>
      [`transformer.h.${layer}.${part}`, [[4, 6], Array.from({ length: 24 }, (_, k) => Math.sin(k + i + layer) + (layer > 2 ? last : 0))]])));
  const [a, b] = sides(t, tensors(0), tensors(0.5));
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url);
  await finished(page);
  for (const layer of [0, 1, 2, 3]) await page.locator('.grow', { hasText: `layer ${layer}` }).waitFor();
  await page.keyboard.press('Shift+C');
  await page.keyboard.press('j');
  await page.locator('.prow.open').waitFor();
  await page.locator('.chart .u-over').click({ position: { x: 5, y: 40 } });
  await page.locator('.prow.open').waitFor();
});

test('a scalar has no heat map; a row that B does not have is said', async (t) => {
  const values = Array.from({ length: 12 }, (_, i) => i);
  const [a, b] = sides(t, { s: [[], [1]], w: [[3, 4], values] }, { s: [[], [2]], w: [[2, 5], values.slice(0, 10)] });
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url);
  await finished(page);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('s');
  await page.keyboard.press('Enter');
  await page.locator('.dims', { hasText: 'scalar' }).waitFor();
  assert.equal(await page.locator('.maps').count(), 0);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('w');
  await page.keyboard.press('Enter');
  await page.locator('.vt td.gone').first().waitFor({ state: 'attached' });
  assert.equal(await page.locator('.vt td.nan').count(), 0);
  assert.match(await page.locator('.vt td.gone').first().textContent(), /not in [AB]/);
});

for (const fusedSide of ['A', 'B'])
test(`a fused tensor of ${fusedSide} shows which part is which, and its values`, async (t) => {
  const line = (seed, n) => Array.from({ length: n }, (_, i) => Math.sin(seed * 1000 + i * i));
  const [q, k, v] = [1, 2, 3].map((seed) => line(seed, 64));
  const names = (layer, part) => `model.layers.${layer}.self_attn.${part}.weight`;
  const split = {};
  const fused = {};
  for (const layer of [0, 1]) {
    const move = (values) => values.map((value) => value + layer);
    split[names(layer, 'q_proj')] = [[8, 8], move(q)];
    split[names(layer, 'k_proj')] = [[8, 8], move(k)];
    split[names(layer, 'v_proj')] = [[8, 8], move(v)];
    fused[names(layer, 'qkv_proj')] = [[24, 8], [...move(q), ...move(k), ...move(v)]];
  }
  const [a, b] = fusedSide === 'B' ? sides(t, split, fused) : sides(t, fused, split);
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url);
  await finished(page);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('0.self_attn.k_proj');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.det h2')?.textContent.includes('k_proj'));
  const shown = () => page.locator('.vt td.cur').allInnerTexts();
  await page.waitForFunction(() => document.querySelectorAll('.vt td.cur').length === 2);
  assert.equal(...(await shown()));
  await page.locator('.maps canvas').first().waitFor();
  const map = page.getByRole('region', { name: 'What is part of what' });
  await map.locator('.part.on', { hasText: 'k_proj' }).waitFor();
  assert.deepEqual(await map.locator('.part').allInnerTexts(), ['q_proj.weight', 'k_proj.weight', 'v_proj.weight']);
  assert.equal(await map.locator('.part.on').innerText(), 'k_proj.weight');
  await map.locator('.part').nth(2).click();
  await page.waitForFunction(() => document.querySelector('.det h2')?.textContent.includes('v_proj'));
});

test('a tensor on several ranks shows which part is of which rank', async (t) => {
  const { url } = await serve(t, [data('tests/data/howto/llama_hooks.pt'), data('tests/data/howto/tp2_missing_reduce')]);
  const page = await browse(t, url);
  await finished(page);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('1.self_attn.q_proj');
  await page.keyboard.press('Enter');
  const map = page.getByRole('region', { name: 'What is part of what' });
  await map.locator('.part').nth(1).waitFor();
  assert.deepEqual(await map.locator('.part').allInnerTexts(), ['rank 0', 'rank 1']);
  await page.locator('.step', { hasText: /^concat axis \d of 2 ranks$/ }).waitFor();
});

/** The Python that the page copies for the open pair, run: max |Δ| as it prints it, and as the page does. */
async function runCopied(page, python, folderOf) {
  await page.keyboard.press('m');
  await page.keyboard.press('Shift+Y');
  await page.locator('.banner', { hasText: 'Copied Python' }).waitFor();
  const file = path.join(folderOf, 'snippet.py');
  writeFileSync(file, await page.evaluate(() => navigator.clipboard.readText()));
  const run = spawnSync(python, [file], { encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
  const largest = Number(/max \|b - a\|: (\S+)/.exec(run.stdout)[1]);
  const shown = Number((await metric(page, 'max |Δ|')).match(/[\d.]+/)[0]);
  assert.ok(Math.abs(largest - shown) < 1e-2 * shown, `${largest} and ${shown}`);
}

const pythonWith = (module) =>
  ['python3', '/usr/bin/python3', process.env.PYTHON ?? ''].find(
    (each) => each && spawnSync(each, ['-c', `import ${module}`]).status === 0,
  );

test('the copied Python loads both sides and gives the number of the page', async (t) => {
  const python = pythonWith('numpy');
  assert.ok(python, 'a Python with NumPy');
  const values = Array.from({ length: 24 }, (_, i) => Math.cos(i));
  const turned = values.map((_, i) => values[(i % 6) * 4 + Math.floor(i / 6)]);
  const [a, b] = sides(t, { w: [[1, 6, 4], values] }, { w: [[4, 6], turned.with(9, 5)] });
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await finished(page);
  await runCopied(page, python, path.dirname(a));
});

test('the copied Python loads torch files in archives', async (t) => {
  const python = pythonWith('torch');
  if (!python) return t.skip('no torch here');
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  const page = await browse(t, url);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await finished(page);
  await page.waitForFunction(() => document.querySelector('.det h2')?.textContent.includes('1_post_attn'));
  await runCopied(page, python, folder(t));
});
