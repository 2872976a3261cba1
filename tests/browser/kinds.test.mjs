// One file alone, with tensors of every kind: shown right, never an error.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { axe, browse, finished, folder, REFERENCE, row, safetensors, serve } from './helper.mjs';

const NAN_BITS = Uint16Array.of(0x3f80, 0x7f80, 0xff80, 0x7fc0); // 1, inf, -inf, nan

/** Name → the tensor, and what the page has to show of its first values. */
const KINDS = {
  scalar: [[[], [1.5]], ['1.5']],
  empty: [[[0, 3], []], []],
  large: [[[3], BigInt64Array.of(9007199254740993n, -1n, 0n), 'I64'], [/^9\.007e\+?15$|^9007199254740993$/, '-1', '0']],
  bytes: [[[2, 3], Uint8Array.of(0, 1, 2, 3, 4, 255), 'U8'], ['0', '1', '2', '3', '4', '255']],
  truth: [[[4], Uint8Array.of(1, 0, 1, 1), 'BOOL'], [/^(1|true)$/, /^(0|false)$/, /^(1|true)$/, /^(1|true)$/]],
  complex: [[[2], Float32Array.of(3, 4, 0, -1), 'C64'], ['5', '1']],
  eight: [[[4], Uint8Array.of(0x38, 0xb8, 0x7f, 0), 'F8_E4M3'], ['1', '-1', /nan/i, '0']],
  special: [[[4], NAN_BITS, 'BF16'], ['1', /∞|inf/i, /∞|inf/i, /nan/i]],
  six: [[[2, 1, 2, 1, 2, 3], Array.from({ length: 24 }, (_, i) => i)], ['0', '1', '2', '3', '4', '5']],
};

test('tensors of every kind are shown', async (t) => {
  const file = path.join(folder(t), 'kinds.safetensors');
  safetensors(file, Object.fromEntries(Object.entries(KINDS).map(([name, [tensor]]) => [name, tensor])));
  const { url } = await serve(t, [file]);
  const page = await browse(t, url);
  await finished(page);
  assert.equal(await page.locator('.verdict h1').innerText(), '9 tensors');
  assert.deepEqual(await page.locator('.prow .nm').allInnerTexts().then((names) => names.slice(0, 9).sort()),
    Object.keys(KINDS).sort(), 'the tensors come before the pairs');
  for (const [name, [, shown]] of Object.entries(KINDS)) {
    await row(page, name).click();
    await page.waitForFunction((each) => document.querySelector('.det h2')?.textContent.startsWith(each), name);
    // The values of the tensor before stay until these have come, and a table that is laid out anew
    // has none for a moment: so those that count are taken at once.
    const texts = await page.waitForFunction((count) => {
      const all = [...document.querySelectorAll('.vals [aria-busy=false] .vt td[data-side=a]')];
      return all.length >= count && all.map((cell) => cell.innerText);
    }, shown.length);
    const cells = await texts.jsonValue();
    shown.forEach((wanted, i) => {
      const text = cells[i].trim().replace('−', '-');
      assert.ok(wanted instanceof RegExp ? wanted.test(text) : text === wanted, `${name}: ${cells.join(' ')}`);
    });
    assert.equal(await page.locator('.banner').count(), 0, name);
  }
});

test('the axes of a pair are said by hand, and it is compared so', async (t) => {
  const here = folder(t);
  const a = safetensors(path.join(here, 'a.safetensors'), { w: [[2, 2], [1, 2, 3, 4]] });
  const b = safetensors(path.join(here, 'b.safetensors'), { w: [[2, 2], [1, 3, 2, 4]] });
  const { url } = await serve(t, [a, b]);
  const page = await browse(t, url, { allow: ['409'] }); // Tiles of the values before.
  await finished(page);
  await page.locator('.badge.bad').waitFor();
  await page.getByRole('button', { name: 'Name the axes' }).click();
  await page.getByLabel('Axes of A and B').fill('i j -> j i');
  await page.keyboard.press('Enter');
  await page.locator('.step', { hasText: 'permute' }).waitFor();
  await page.locator('.ph .badge.ok').waitFor();
  await page.getByRole('button', { name: 'Name the axes' }).click();
  await page.getByRole('button', { name: 'Find out again' }).click();
  await page.locator('.ph .badge.bad').waitFor();
});

for (const size of [[1440, 900], [1024, 768]]) {
  for (const theme of ['light', 'dark']) {
    test(`axe finds nothing in one file alone at ${size.join('×')}, ${theme}`, async (t) => {
      const { url } = await serve(t, [REFERENCE]);
      const page = await browse(t, url, { size, theme });
      await finished(page);
      await page.locator('.vt td').first().waitFor();
      await axe(page, 'a tensor');
      await page.keyboard.press('1');
      await page.locator('.v1').waitFor();
      await axe(page, 'its values along a line');
    });
  }
}
