// Everyone can use it: keyboard alone, and axe finds nothing, in both themes and sizes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axeSource, BUGGY, browse, finished, REFERENCE, serve } from './helper.mjs';

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Through the debugger's protocol: the page's own policy lets no other script in. */
async function axe(page, where) {
  await page.evaluate(readAxe());
  const found = await page.evaluate((rules) => axe.run(document, { runOnly: rules }), RULES);
  const said = found.violations.map((each) => `${where}: ${each.id}: ${each.nodes[0].html.slice(0, 120)}`);
  assert.deepEqual(said, []);
}

let source = '';
import { readFileSync } from 'node:fs';
const readAxe = () => {
  source ||= readFileSync(axeSource, 'utf8');
  return source;
};

for (const size of [[1440, 900], [1024, 768]]) {
  for (const theme of ['light', 'dark']) {
    test(`axe finds nothing at ${size.join('×')}, ${theme}`, async (t) => {
      const { url } = await serve(t);
      const page = await browse(t, url, { size, theme });
      await page.getByRole('heading', { name: 'Open tensors' }).waitFor();
      await axe(page, 'open');
      await page.getByRole('button', { name: 'Try the demo' }).click();
      await finished(page);
      await page.locator('.vt td.cur').first().waitFor();
      await axe(page, 'session');
      await page.keyboard.press('1');
      await page.locator('.v1').waitFor();
      await axe(page, 'values along a line');
      for (const [key, name] of [['?', 'Keys'], ['Control+k', 'Search'], ['g', 'Go to an index']]) {
        await page.keyboard.press(key);
        await page.getByRole('dialog', { name }).waitFor();
        await axe(page, name);
        await page.keyboard.press('Escape');
      }
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
      assert.equal(wide, false, 'nothing sticks out sideways');
    });
  }
}

test('all by keyboard: find the bug, walk the list, reach the worst element, leave', async (t) => {
  const { url } = await serve(t, [REFERENCE, BUGGY]);
  const page = await browse(t, url);
  await finished(page);
  const place = () => page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get('p'));
  await page.waitForFunction(() => /[#&]p=\d+&at=/.test(location.hash));
  const first = await place();
  await page.keyboard.press('j');
  await page.waitForFunction((before) => !location.hash.includes(`p=${before}&`), first);
  await page.keyboard.press('Shift+K');
  await page.waitForFunction((before) => location.hash.includes(`p=${before}&`), first);
  await page.keyboard.press('/');
  await page.keyboard.type('2_query');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.det h2').textContent.includes('query'));
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowLeft');
  assert.equal(await page.locator('.grow').first().getAttribute('aria-expanded'), 'false');
  await page.keyboard.press('m');
  await page.keyboard.press('t');
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('>open other');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Open tensors' }).waitFor();
});
