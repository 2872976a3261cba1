// One pair: the same numbers as the command line, sliders, views, jumps, maps.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BUGGY, browse, finished, metric, REFERENCE, report, row, serve } from './helper.mjs';

const wanted = report(REFERENCE, BUGGY);
const worst = wanted.pairs.find((pair) => pair.index === wanted.first_divergence.pair);

async function openDemo(t, options) {
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  const page = await browse(t, url, options);
  await finished(page);
  // The culprit opens with the news of it, which may come after the verdict is drawn.
  await page.waitForFunction((stage) => document.querySelector('.det h2')?.textContent.includes(stage), worst.stage);
  return page;
}

const number = (text) => Number(text.replace(/,/g, '').match(/-?[\d.]+(?:e-?\d+)?/)[0]);
const close = (shown, exact) => assert.ok(Math.abs(shown - exact) <= 1e-3 * Math.abs(exact), `${shown} is not ${exact}`);

test('the first divergence is open, with the numbers of the report', async (t) => {
  const page = await openDemo(t);
  assert.match(await page.locator('.det h2').innerText(), new RegExp(worst.stage));
  assert.match(await page.locator('.finding').innerText(), /B = 0\.125 × A/);
  close(number(await metric(page, 'max |Δ|')), worst.diff.max_abs);
  close(number(await metric(page, 'mean |Δ|')), worst.diff.mean_abs);
  close(number(await metric(page, 'relative L2')), worst.diff.rel_l2);
  assert.match(await metric(page, 'beyond tolerance'), new RegExp(worst.diff.exceeding.toLocaleString('en-US')));
  assert.match(await metric(page, 'max |Δ|'), new RegExp(worst.diff.max_abs_at.join(', ')));
});

test('layer 1 has its stages; a jump to the largest difference shows its exact values', async (t) => {
  const page = await openDemo(t);
  await page.getByRole('button', { name: 'Collapse all groups' }).click();
  await page.locator('.grow', { hasText: 'layer 1' }).click();
  const stages = wanted.pairs.filter((pair) => pair.layer === 1).map((pair) => pair.stage);
  assert.deepEqual(await page.locator('.prow .nm').allInnerTexts(), stages);
  await row(page, worst.stage).click();
  await page.keyboard.press('m');
  const cell = page.locator('.vt td.cur[data-side=b]');
  await cell.hover();
  const tip = await page.getByRole('tooltip').innerText();
  assert.ok(tip.includes(`[${worst.diff.max_abs_at.join(', ')}]`), tip);
  close(number(/\nA\s+(\S+)/.exec(tip)[1]), worst.diff.a_there);
  close(number(/\nB\s+(\S+)/.exec(tip)[1]), worst.diff.b_there);
  assert.match(tip, /exceeds tolerance/);
  assert.match(tip, /0x[0-9a-f]{8}/);
});

test('next beyond tolerance, an index, a value', async (t) => {
  const page = await openDemo(t);
  const place = () => page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get('at'));
  await page.keyboard.press('g');
  await page.getByLabel('Index', { exact: true }).fill('0, 0');
  await page.keyboard.press('Enter');
  await page.keyboard.press('n');
  await page.waitForFunction(() => new URLSearchParams(location.hash.slice(1)).get('at') === '0,1');
  await page.keyboard.press('f');
  await page.getByLabel('Value', { exact: true }).fill('99999');
  await page.keyboard.press('Enter');
  await page.getByText('Nothing found.').waitFor();
  assert.equal(await place(), '0,1');
  await page.keyboard.press('f');
  await page.getByLabel('Value', { exact: true }).fill(`d: >${worst.diff.max_abs * 0.9999}`);
  await page.keyboard.press('Enter');
  await page.waitForFunction((at) => new URLSearchParams(location.hash.slice(1)).get('at') === at, worst.diff.max_abs_at.join(','));
});

test('three views; the first ten values by default; from and to', async (t) => {
  const page = await openDemo(t);
  await page.keyboard.press('1');
  await page.locator('.v1 tbody tr').nth(9).waitFor();
  assert.equal(await page.locator('.v1 tbody tr').count(), 10);
  await page.getByLabel('Values from:to').fill('3:7');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('.v1 tbody tr').length === 4);
  assert.equal(await page.locator('.v1 tbody th').first().innerText(), '3');
  await page.keyboard.press('Escape');
  await page.locator('.det h2').click();
  await page.keyboard.press('3');
  await page.locator('.vt caption', { hasText: 'row-major' }).waitFor({ state: 'attached' });
  await page.keyboard.press('2');
  await page.locator('.vt td.cur').first().waitFor();
});

test('sliders step through dimensions of any rank, and both sides can part', async (t) => {
  const page = await openDemo(t);
  const deep = wanted.pairs.find((pair) => pair.shape?.length >= 3);
  await page.keyboard.press('Control+k');
  await page.getByLabel('Search pairs and commands').fill(deep.name_a);
  await page.keyboard.press('Enter');
  const slider = page.getByLabel('Index in dimension 0', { exact: true });
  await slider.focus();
  await slider.press('ArrowRight');
  await page.waitForFunction(() => /^1,/.test(new URLSearchParams(location.hash.slice(1)).get('at')));
  await page.getByRole('button', { name: 'Slice A and B together' }).click();
  assert.equal(await page.locator('.dims').count(), 2);
  await page.locator('.dims').nth(1).getByLabel('Index in dimension 0 as a number').fill('0');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => !document.querySelector('.vt td.far, .vt td.near'));
});

test('maps zoom, pan, blink and keep the cursor; both painters agree', async (t) => {
  const page = await openDemo(t);
  const pixels = () => page.evaluate(() => {
    const canvas = document.querySelector('[data-heat=d] canvas');
    return [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data];
  });
  await page.waitForFunction(() => document.querySelector('[data-heat=d] canvas')?.dataset.level !== undefined);
  const whole = await pixels();
  await page.evaluate(() => sessionStorage.setItem('renderer', 'webgl2'));
  await page.reload();
  await page.waitForFunction(() => document.querySelector('[data-heat=d] canvas')?.dataset.level !== undefined);
  const again = await pixels();
  const apart = whole.filter((value, i) => Math.abs(value - again[i]) > 6).length;
  assert.ok(apart < whole.length / 500, `${apart} of ${whole.length} differ between WebGL2 and Canvas`);
  await page.locator('[data-heat=d]').focus();
  await page.keyboard.press('w');
  await page.waitForFunction(() => new URLSearchParams(location.hash.slice(1)).has('z'));
  await page.locator('.mm').waitFor();
  await page.keyboard.press('0');
  await page.waitForFunction(() => !new URLSearchParams(location.hash.slice(1)).has('z'));
  await page.keyboard.down('b');
  await page.locator('.flip').first().waitFor();
  await page.keyboard.up('b');
  await page.locator('.flip').first().waitFor({ state: 'detached' });
});

test('the address carries the view', async (t) => {
  const page = await openDemo(t);
  await page.keyboard.press('g');
  await page.getByLabel('Index', { exact: true }).fill('5, 7');
  await page.keyboard.press('Enter');
  await page.keyboard.press('1');
  await page.waitForFunction(() => location.hash.includes('at=5,7') && location.hash.includes('v=1d'));
  const hash = await page.evaluate(() => location.hash);
  await page.reload();
  await page.locator('.v1').waitFor();
  await page.waitForFunction((before) => location.hash === before, hash);
});
