// Pictures of the page for the README, in both themes: node tools/pictures.mjs PROGRAM.
// The demo is opened in a real browser; `./dev pictures` runs this after a build.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const require = createRequire(new URL('../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');
const program = path.resolve(process.argv[2] ?? path.join(root, 'build/tensordiff'));

const state = mkdtempSync(path.join(tmpdir(), 'tensordiff-pictures-'));
const server = spawn(program, ['demo', '--port', '0', '--no-open', '--state', state]);
const url = await new Promise((done, fail) => {
  let text = '';
  const read = (part) => {
    text += part;
    const found = /http:\/\/\S+#t=\S+/.exec(text);
    if (found) done(found[0]);
  };
  server.stdout.on('data', read);
  server.stderr.on('data', read);
  server.on('exit', () => fail(new Error(text)));
});
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu'],
});
for (const theme of ['light', 'dark']) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: theme });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(url);
  await page.locator('.finding').waitFor();
  await page.waitForFunction(() =>
    [...document.querySelectorAll('[data-heat] canvas:not(.ink)')].every((each) => each.dataset.level !== undefined));
  await page.locator('.vt td.cur').first().waitFor();
  await page.locator('.wt').waitFor();
  await page.waitForTimeout(500); // For fonts and the last frame.
  await page.screenshot({ path: path.join(root, `docs/page-${theme}.png`) });
  await context.close();
}
await browser.close();
server.removeAllListeners('exit');
server.kill();
await new Promise((done) => server.once('exit', done));
rmSync(state, { recursive: true, force: true });
