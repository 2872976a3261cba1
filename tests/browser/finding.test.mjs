// The cause comes first: headline, evidence, T(A) in place of A, every divergence, the export.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { axe, BUGGY, browse, data, finished, folder, metric, REFERENCE, report, safetensors, serve } from './helper.mjs';

/** Numbers without a pattern, the same in every run. */
function noise(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}

/** A dump whose layer 1 is scaled, and layer 3 once more. */
export function twoBugs(t) {
  const here = folder(t);
  const next = noise(7);
  const sides = [{}, {}];
  for (let layer = 0; layer < 5; layer++)
    for (const stage of ['query', 'key', 'value', 'post_attn', 'post_mlp']) {
      const a = Array.from({ length: 12 * 32 }, () => next() + next() + next());
      const factor = () => {
        if (layer === 3 && stage === 'post_attn') return 0.125;
        if (layer === 1 && stage === 'post_mlp') return 1.01;
        return layer > 1 ? 1.01 + 1e-4 * next() : 1 + 1e-7 * next();
      };
      sides[0][`${layer}_${stage}`] = [[12, 32], a];
      sides[1][`${layer}_${stage}`] = [[12, 32], a.map((value) => value * factor())];
    }
  return sides.map((tensors, i) => safetensors(path.join(here, `${'ab'[i]}.safetensors`), tensors));
}

/** How dark the map of |Δ| is, from 0 to 1: at most so much, if a limit is given. */
const darkOf = (limit) => {
  const canvas = document.querySelector('[data-heat=d] canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let sum = 0;
  for (let i = 0; i < data.length; i += 4) sum += 255 - data[i + 2];
  const dark = (4 * sum) / (255 * data.length);
  return limit === undefined ? dark : dark <= limit;
};
const inkOf = async (page) => {
  await page.waitForFunction(() => document.querySelector('[data-heat=d] canvas')?.dataset.level !== undefined);
  return page.evaluate(darkOf);
};

const number = (text) => Number(text.replace(/,/g, '').match(/-?[\d.]+(?:e-?\d+)?/)[0]);

test('the cause is the headline, with its confidence, what it leaves, and values to check', async (t) => {
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  const page = await browse(t, url);
  await finished(page);
  const verdict = page.locator('.verdict');
  assert.match(await verdict.innerText(), /Diverges in layer 1[\s\S]*B = 0\.125 × A[\s\S]*\d+ % sure/);
  // Close is not called equal, and the counts agree with the sentence.
  assert.match(await verdict.innerText(), /all 20 pairs before it are within tolerance[\s\S]*6\s*match\s*18\s*close\s*15\s*different/);
  assert.match(await verdict.innerText(), /relative error 0\.875 → 1\.07e-7 with this cause undone/);
  const finding = page.locator('.finding');
  assert.match(await finding.innerText(), /B = 0\.125 × A[\s\S]*\d+ % sure[\s\S]*0\.875 → 1\.07e-7/);
  const found = report(REFERENCE, BUGGY).findings[0].evidence;
  const shown = await finding.locator('.evid tr').evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  assert.deepEqual(shown.map((row) => row[0]), ['A', 'T(A)', 'B']);
  [found.a, found.model, found.b].forEach((values, i) => shown[i].slice(1).forEach((text, k) =>
    assert.ok(Math.abs(Number(text.replace('−', '-')) - values[k]) < 1e-3 * Math.abs(values[k]), `${text} is not ${values[k]}`)));
  assert.match(await finding.locator('caption').textContent(), new RegExp(`\\[${found.at.join(', ')}\\]`));
});

test('a long cause is not cut', async (t) => {
  const { url } = await serve(t, [data('tests/data/howto/llama_hooks.pt'), data('tests/data/howto/tp2_missing_reduce')]);
  const page = await browse(t, url);
  await finished(page);
  const cause = page.locator('.verdict .cause b');
  await cause.waitFor();
  assert.match(await cause.innerText(), /the sum over ranks is missing$/);
  assert.ok(await cause.evaluate((each) => each.scrollHeight <= each.clientHeight + 1 && each.scrollWidth <= each.clientWidth + 1));
});

test('a finding is applied: |Δ|, values and metrics are those of T(A), and the address keeps it', async (t) => {
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  const page = await browse(t, url);
  await finished(page);
  // The culprit opens with the news of it, which may come after the verdict is drawn.
  await page.waitForFunction(() => document.querySelector('.det h2')?.textContent.includes('1_post_attn'));
  const before = number(await metric(page, 'max |Δ|'));
  const ink = await inkOf(page);
  await page.getByRole('button', { name: 'Apply this finding' }).click();
  await page.getByRole('button', { name: 'Applied: T(A) in place of A', pressed: true }).waitFor();
  await page.waitForFunction(() => document.querySelector('.map-a .ab')?.textContent === 'T(A)');
  const after = number(await metric(page, 'max |Δ|'));
  assert.ok(after < 1e-5 * before, `${before} → ${after}`);
  assert.match(await metric(page, 'beyond tolerance'), /^0(\.0+)? %/);
  // What the finding explains is no longer dark in the map of |Δ|.
  await page.waitForFunction(darkOf, ink / 4);
  await page.waitForFunction(() => {
    const of = (side) => Number(document.querySelector(`.vt td.cur[data-side=${side}]`)?.textContent.split(' ')[0].replace('−', '-'));
    return Math.abs(of('a') - of('b')) <= 1e-2 * Math.abs(of('b'));
  });
  await page.waitForFunction(() => new URLSearchParams(location.hash.slice(1)).get('f') === '0');
  await page.reload();
  await page.getByRole('button', { name: 'Applied: T(A) in place of A', pressed: true }).waitFor();
  await page.getByRole('button', { name: 'Applied: T(A) in place of A' }).click();
  await page.getByRole('button', { name: 'Apply this finding', pressed: false }).waitFor();
  assert.equal(number(await metric(page, 'max |Δ|')), before);
  // Another pair starts as it is.
  await page.getByRole('button', { name: 'Apply this finding' }).click();
  await page.getByRole('button', { name: 'Applied: T(A) in place of A' }).waitFor();
  await page.keyboard.press('j');
  await page.waitForFunction(() => !new URLSearchParams(location.hash.slice(1)).has('f'));
});

test('the chart is as high as the panel beside it, however many lines that takes', async (t) => {
  const { url } = await serve(t, twoBugs(t));
  const page = await browse(t, url);
  await finished(page);
  await page.locator('.also').waitFor();
  const heights = () => page.evaluate(() =>
    ['.over', '.chart .plot', '.chart .plot .uplot'].map((each) => document.querySelector(each).getBoundingClientRect().height));
  await page.waitForFunction(() => {
    const height = (each) => document.querySelector(each)?.getBoundingClientRect().height ?? 0;
    return height('.chart .plot .uplot') > height('.over') - 24;
  }, null, { timeout: 10_000 }).catch(() => {});
  const [panel, plot, drawn] = await heights();
  assert.ok(plot > panel - 16 && drawn > panel - 24, `${plot} and ${drawn} of ${panel}`);
});

test('a chart that is drawn again, since its font came late, looks as before', async (t) => {
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  const page = await browse(t, url);
  await finished(page);
  const pixels = () => page.evaluate(() => document.querySelector('.chart canvas').toDataURL());
  await page.evaluate(() => document.fonts.ready);
  await page.waitForTimeout(500);
  const before = await pixels();
  await page.evaluate(() => document.querySelector('.chart canvas').getContext('2d').clearRect(0, 0, 5000, 5000));
  assert.notEqual(await pixels(), before);
  await page.evaluate(() => document.fonts.dispatchEvent(new Event('loadingdone')));
  await page.waitForTimeout(500);
  assert.equal(await pixels(), before);
});

test('all divergences have a flag and a line; the export tells the same', async (t) => {
  const [a, b] = twoBugs(t);
  const wanted = report(a, b);
  assert.deepEqual([wanted.first_divergence, ...wanted.next_divergences].map((each) => each.name_a), ['1_post_mlp', '3_post_attn']);
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url);
  await finished(page);
  await page.getByRole('application', { name: /2 flagged/ }).or(page.locator('[aria-label*="2 flagged"]')).first().waitFor();
  assert.match(await page.locator('.also').innerText(), /also layer 3, post_attn/);
  await page.getByRole('button', { name: 'List all 2' }).click();
  const list = page.getByRole('dialog', { name: 'Divergences' });
  await list.waitFor();
  await axe(page, 'divergences', 'dialog');
  assert.match(await list.innerText(), /layer 1, post_mlp[\s\S]*B = 1\.01 × A[\s\S]*layer 3, post_attn[\s\S]*B = 0\.125 × A/);
  for (const said of await list.locator('li .t2').allInnerTexts())
    assert.equal(said.match(/relative error/g).length, 1, said);
  await list.getByRole('button', { name: 'layer 3, post_attn' }).click();
  await page.waitForFunction(() => document.querySelector('.det h2').textContent.includes('3_post_attn'));
  // The tree shows the row, and its flag.
  await page.locator('.prow.open', { hasText: 'post_attn' }).locator('.flag').waitFor();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    (async () => {
      await page.getByRole('button', { name: 'Export' }).click();
      await page.getByRole('dialog').getByRole('button', { name: /^HTML/ }).click();
    })(),
  ]);
  const html = await (await import('node:fs/promises')).readFile(await download.path(), 'utf8');
  for (const text of ['B = 1.01 × A', 'B = 0.125 × A', 'post_attn']) assert.ok(html.includes(text), text);
  assert.match(html, /confidence \d\d(\.\d)? %/);
});

test('it opens at the worst element of the culprit', async (t) => {
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  const wanted = report(REFERENCE, BUGGY);
  const worst = wanted.pairs.find((pair) => pair.index === wanted.first_divergence.pair);
  const page = await browse(t, url);
  await finished(page);
  const at = worst.diff.max_abs_at.join(',');
  await page.waitForFunction((place) => new URLSearchParams(location.hash.slice(1)).get('at') === place, at);
  // Also after the cursor was moved elsewhere, by the way that the verdict offers.
  await page.keyboard.press('g');
  await page.getByLabel('Index', { exact: true }).fill('0, 0');
  await page.keyboard.press('Enter');
  await page.keyboard.press('j');
  await page.locator('.verdict').getByRole('button', { name: worst.stage }).click();
  await page.waitForFunction((place) => new URLSearchParams(location.hash.slice(1)).get('at') === place, at);
});

test('a bug in the first pair is not carried; the counts and the verdict agree', async (t) => {
  const here = folder(t);
  const next = noise(11);
  const sides = [{}, {}];
  for (const name of ['0_query', '0_key', '0_value', '1_query', '1_key']) {
    const a = Array.from({ length: 6 * 16 }, () => next());
    sides[0][name] = [[6, 16], a];
    sides[1][name] = [[6, 16], a.map((value) => value * (name === '0_query' ? 2 : 1 + 1e-7 * next()))];
  }
  const files = sides.map((tensors, i) => safetensors(path.join(here, `${'ab'[i]}.safetensors`), tensors));
  const { url } = await serve(t, files);
  const page = await browse(t, url);
  await finished(page);
  await page.waitForFunction(() => document.querySelector('.det h2')?.textContent.includes('0_query'));
  const verdict = await page.locator('.verdict').innerText();
  assert.match(verdict, /Diverges in layer 0[\s\S]*the first pair of all/);
  assert.doesNotMatch(verdict, /before it/);
  assert.equal(await page.getByText('Carried here').count(), 0);
});

test('weights have no first one: how many changed, and the largest change is open', async (t) => {
  const here = folder(t);
  const next = noise(13);
  const sides = [{}, {}];
  for (const [name, size] of [['fc1.weight', 0.1], ['fc2.weight', 0.5], ['fc3.weight', 0.2], ['fc4.weight', 0]]) {
    const a = Array.from({ length: 8 * 8 }, () => next());
    sides[0][name] = [[8, 8], a];
    sides[1][name] = [[8, 8], a.map((value) => value + size * next())];
  }
  const files = sides.map((tensors, i) => safetensors(path.join(here, `${'ab'[i]}.safetensors`), tensors));
  const { url } = await serve(t, files);
  const page = await browse(t, url, { allow: ['409'] }); // Asked of the tolerance before.
  await finished(page);
  await page.waitForFunction(() => document.querySelector('.det h2')?.textContent.includes('fc2.weight'));
  assert.match(await page.locator('.verdict').innerText(), /3 of 4 tensors changed[\s\S]*Largest change: fc2\.weight/);
  assert.equal(await page.locator('.rows .flag').count(), 0);
  // Under a loose tolerance all agree, and nobody calls that rounding.
  await page.keyboard.press('Control+k');
  await page.getByLabel('Search pairs and commands').fill('>tolerance');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('atol').fill('10');
  await dialog.locator('button[type=submit]').click();
  await page.locator('.verdict h1', { hasText: 'Agree within tolerance' }).waitFor();
  assert.match(await page.locator('.verdict').innerText(), /1 pair equal, 3 pairs close/);
  assert.equal(await page.getByText('rounding').count(), 0);
});
