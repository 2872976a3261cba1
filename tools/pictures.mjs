// Pictures of the page for the README, in both themes: node tools/pictures.mjs PROGRAM.
// The demo is opened in a real browser; `./dev pictures` runs this after a build, and
// tests/browser/pictures.test.mjs fails when the pictures no longer show the page.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));

export const THEMES = ['light', 'dark'];
export const SIZE = [1440, 900];
export const fileOf = (theme) => path.join(root, `docs/page-${theme}.png`);

/** A picture of a page that shows the demo, once all of it is drawn. */
export async function picture(page, options = {}) {
  await page.locator('.finding').waitFor();
  await page.waitForFunction(() =>
    [...document.querySelectorAll('[data-heat] canvas:not(.ink)')].every((each) => each.dataset.level !== undefined));
  await page.locator('.vt td.cur').first().waitFor();
  await page.locator('.wt').waitFor();
  await page.waitForTimeout(500); // For fonts and the last frame.
  return page.screenshot(options);
}

/** Starts the demo and waits for the address that it prints. */
function demo(program, state) {
  const server = spawn(program, ['demo', '--port', '0', '--no-open', '--state', state]);
  return new Promise((done, fail) => {
    let text = '';
    const read = (part) => {
      text += part;
      const found = /http:\/\/\S+#t=\S+/.exec(text);
      if (found) done({ server, url: found[0] });
    };
    server.stdout.on('data', read);
    server.stderr.on('data', read);
    server.on('exit', () => fail(new Error(text)));
  });
}

async function main(program) {
  const require = createRequire(new URL('../web/package.json', import.meta.url));
  const { chromium } = require('playwright-core');
  const state = mkdtempSync(path.join(tmpdir(), 'tensordiff-pictures-'));
  const { server, url } = await demo(program, state);
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu'],
  });
  for (const theme of THEMES) {
    const [width, height] = SIZE;
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    await page.goto(url);
    await picture(page, { path: fileOf(theme) });
    await context.close();
  }
  await browser.close();
  server.removeAllListeners('exit');
  server.kill();
  await new Promise((done) => server.once('exit', done));
  rmSync(state, { recursive: true, force: true });
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await main(path.resolve(process.argv[2] ?? path.join(root, 'build/tensordiff')));
