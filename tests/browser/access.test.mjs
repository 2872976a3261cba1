// Everyone can use it: keyboard alone, and axe finds nothing, in both themes and sizes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axe, BUGGY, browse, finished, REFERENCE, serve } from './helper.mjs';

for (const size of [[1440, 900], [1024, 768], [800, 900]]) {
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
      const keys = ['?', 'Control+k', 'g', 'f'].map((key) => () => page.keyboard.press(key));
      const commands = ['Export', 'Matching and pairings', 'tolerance'].map((name) => async () => {
        await page.keyboard.press('Control+k');
        await page.keyboard.type(`>${name}`);
        await page.keyboard.press('Enter');
      });
      for (const open of [...keys, ...commands]) {
        await open();
        await page.getByRole('dialog').waitFor();
        await axe(page, `dialog ${await page.getByRole('dialog').getAttribute('aria-label')}`, 'dialog');
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
      }
      for (const view of ['By axis', 'Flat']) {
        const button = page.getByRole('button', { name: view, exact: true });
        if (await button.isVisible()) await button.click();
      }
      await axe(page, 'other views');
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
