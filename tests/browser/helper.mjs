// What the browser tests share: a server of their own, a page, real file drops, made-up files.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';

const require = createRequire(new URL('../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');

export const root = fileURLToPath(new URL('../../', import.meta.url));
export const program = path.resolve(process.env.TENSORDIFF ?? `${root}build/tensordiff`);
export const data = (name) => path.join(root, name);

export const REFERENCE = data('demo/reference.zip');
export const BUGGY = data('demo/constant_scale.tgz');

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];

const endings = new WeakMap();

/** After the test, what was begun last ends first: the page before its server. */
function later(t, end) {
  if (!endings.has(t)) {
    const list = [];
    endings.set(t, list);
    t.after(async () => {
      // All of them, also after one that fails: a server left running would keep the tests waiting.
      const failures = [];
      for (const each of list.reverse()) {
        try {
          await each();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    });
  }
  endings.get(t).push(end);
}

/** A folder that is gone after the test. */
export function folder(t) {
  const made = mkdtempSync(path.join(tmpdir(), 'tensordiff-'));
  later(t, () => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Starts the program and waits for the address that it prints. */
export async function serve(t, args = [], { state = folder(t), command = 'serve', port = '0' } = {}) {
  const child = spawn(program, [command, ...args, '--port', port, '--no-open', '--state', state]);
  let text = '';
  const url = await new Promise((done, fail) => {
    const read = (part) => {
      text += part;
      const found = /http:\/\/\S+#t=\S+/.exec(text);
      if (found) done(found[0]);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('error', fail);
    child.on('exit', (status) => fail(new Error(`the server ended with ${status}: ${text}`)));
  });
  // Until it has ended: the next one needs the folder that it holds.
  const end = (signal) => new Promise((done) => {
    if (child.exitCode !== null || child.signalCode !== null) return done();
    child.removeAllListeners('exit');
    child.once('exit', done);
    child.kill(signal);
  });
  const stop = () => end('SIGTERM');
  const kill = () => end('SIGKILL');
  later(t, stop);
  return { url, state, stop, kill };
}

/** SLOW=800: each request waits up to so many milliseconds, so that answers come in any order. */
const SLOW = Number(process.env.SLOW ?? 0);
const slowly = async (route) => {
  await new Promise((done) => setTimeout(done, Math.random() * SLOW));
  await route.fallback().catch(() => {}); // The page may be gone.
};

/** THROTTLE=6: the page has a sixth of the processor, as on a busy or small machine. */
const THROTTLE = Number(process.env.THROTTLE ?? 1);

async function throttle(page) {
  const client = await page.context().newCDPSession(page);
  await client.send('Emulation.setCPUThrottlingRate', { rate: THROTTLE });
}

/** PAGE=web/dist: the page of that folder in place of the one in the program, which is not built anew. */
const PAGE = process.env.PAGE;
const servePage = (route) => {
  const { pathname } = new URL(route.request().url());
  return route.fulfill({ path: path.resolve(PAGE, pathname === '/' ? 'index.html' : `.${pathname}`) });
};

// One browser for a file of tests, on a profile of its own; each test has a context of its own.
let browser;
after(() => browser?.then((one) => one.close()));

/** A page that knows nothing of others; anything that it complains about fails the test. */
export async function browse(t, url, { size = [1440, 900], theme = 'light', allow = [], before } = {}) {
  browser ??= chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });
  const context = await (await browser).newContext({
    viewport: { width: size[0], height: size[1] },
    colorScheme: theme,
  });
  later(t, () => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  later(t, () => assert.deepEqual(complaints.filter((text) => !allow.some((each) => text.includes(each))), []));
  if (PAGE) await page.route(/^[^#?]*\/(assets\/[^?#]*)?([?#].*)?$/, servePage);
  await before?.(page);
  if (SLOW > 0) await page.route('**/api/**', slowly);
  if (THROTTLE > 1) await throttle(page);
  await page.goto(url);
  return page;
}

/** Drops files from the system onto an element, as a hand with a mouse does. */
export async function dropFiles(page, selector, files) {
  const box = await page.locator(selector).boundingBox();
  const client = await page.context().newCDPSession(page);
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const drag = { items: [], files, dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop'])
    await client.send('Input.dispatchDragEvent', { type, x, y, data: drag });
  await client.detach();
}

/** The result of the same comparison on the command line. */
export function report(...args) {
  const run = spawnSync(program, [...args, '-o', 'report'], { encoding: 'utf8', maxBuffer: 1 << 28 });
  assert.ok(run.status <= 1, run.stderr);
  return JSON.parse(run.stdout);
}

/** A safetensors file: {name: [shape, values]}, in float32 unless an array says another type. */
export function safetensors(file, tensors) {
  const header = {};
  const parts = [];
  let at = 0;
  for (const [name, [shape, values, dtype = 'F32']] of Object.entries(tensors)) {
    const bytes = Buffer.from((dtype === 'F32' ? Float32Array.from(values) : values).buffer);
    header[name] = { dtype, shape, data_offsets: [at, at + bytes.length] };
    at += bytes.length;
    parts.push(bytes);
  }
  const text = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  // In one go: a server that has the file open keeps what it had.
  writeFileSync(`${file}.new`, Buffer.concat([size, text, ...parts]));
  renameSync(`${file}.new`, file);
  return file;
}

/** Waits until a session has been compared and explained. */
export async function finished(page) {
  await page.locator('.verdict h1').waitFor();
  await page.waitForFunction(() => {
    const head = document.querySelector('.verdict h1')?.textContent ?? '';
    return head !== '' && !head.endsWith('…');
  });
}

/** The number behind a label of the metrics line. */
export const metric = (page, name) =>
  page.locator('.met', { has: page.locator('dt', { hasText: name }) }).locator('dd').first().innerText();

export const row = (page, name) => page.locator('.prow', { has: page.getByText(name, { exact: true }) });

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
let axeSource = '';

/** Through the debugger's protocol: the page's own policy lets no other script in. */
export async function axe(page, where, inside = 'body') {
  axeSource ||= readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
  await page.evaluate(axeSource);
  const found = await page.evaluate(
    ([part, rules]) => axe.run(part === 'body' ? document : part, { runOnly: rules }), [inside, RULES]);
  const said = found.violations.map((each) => `${where}: ${each.id}: ${each.nodes[0].html.slice(0, 120)}`);
  assert.deepEqual(said, []);
}
