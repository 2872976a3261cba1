// How the page moves with very many pairs: node bench/page.mjs PROGRAM A B. Prints JSON.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';

const require = createRequire(new URL('../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');
const FRAMES = 240;
const OPENS = 5;

const [program, a, b] = process.argv.slice(2);
const state = mkdtempSync(path.join(tmpdir(), 'tensordiff-'));
const server = spawn(program, ['serve', a, b, '--port', '0', '--no-open', '--state', state]);
const url = await new Promise((done) => {
  let text = '';
  server.stdout.on('data', (part) => {
    text += part;
    const found = /http:\/\/\S+#t=\S+/.exec(text);
    if (found) done(found[0]);
  });
});
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run'],
});

/** Until rows are drawn and a frame has passed after them, by the clock of the page itself. */
async function opened() {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.addInitScript(() => {
    window.usable = new Promise((done) => {
      const watch = new MutationObserver(() => {
        if (!document.querySelector('.rows [role=row]')) return;
        watch.disconnect();
        requestAnimationFrame(() => setTimeout(() => done(performance.now())));
      });
      watch.observe(document, { childList: true, subtree: true });
    });
  });
  await page.goto(url);
  const ms = await page.evaluate(() => window.usable);
  return { page, ms };
}

const first = await opened();
await first.page.waitForFunction(
  () => /^\D*([\d,]+) of \1 pairs/.test(document.querySelector('.stat')?.textContent ?? ''),
  null, { timeout: 300_000 });
await first.page.close();

const times = [];
let page;
for (let i = 0; i < OPENS; i++) {
  await page?.close();
  const again = await opened();
  page = again.page;
  times.push(again.ms);
}
const ms = times.sort((x, y) => x - y)[Math.floor(OPENS / 2)];
await page.getByRole('button', { name: 'Expand all groups' }).click();
const client = await page.context().newCDPSession(page);
await client.send('Performance.enable');
const script = async () => (await client.send('Performance.getMetrics')).metrics
  .find((metric) => metric.name === 'ScriptDuration').value;
const before = await script();
await page.evaluate(async (frames) => {
  const list = document.querySelector('.rows');
  const height = list.scrollHeight;
  for (let i = 0; i < frames; i++) {
    list.scrollTop = (height * i) / frames;
    await new Promise((done) => requestAnimationFrame(done));
  }
}, FRAMES);
const spent = (await script()) - before;

/** Time of the main thread for each key that is typed into the palette, until its frame is drawn. */
async function typed(text) {
  const busy = await page.context().newCDPSession(page);
  await busy.send('Performance.enable', { timeDomain: 'threadTicks' });
  const used = async () => (await busy.send('Performance.getMetrics')).metrics
    .find((metric) => metric.name === 'TaskDuration').value;
  await page.keyboard.press('Control+k');
  await page.getByLabel('Search pairs and commands').waitFor();
  const keys = [];
  for (const letter of text) {
    const start = await used();
    await page.keyboard.press(letter);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    keys.push(1000 * ((await used()) - start));
  }
  if (!(await page.locator('#hits li').count())) throw new Error('the palette finds nothing');
  return keys.sort((x, y) => x - y);
}
const keys = await typed(process.env.PALETTE ?? 'layer 18');

console.log(JSON.stringify({
  usable_ms: ms, script_ms: (1000 * spent) / FRAMES, frames: FRAMES,
  key_ms: keys[Math.floor(keys.length / 2)], key_ms_max: keys.at(-1),
}));
await browser.close();
server.kill();
server.once('exit', () => rmSync(state, { recursive: true, force: true }));
