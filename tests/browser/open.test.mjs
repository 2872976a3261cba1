// Opening: real drops, paths, three modes, progress, what cannot be read, sessions that last.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { BUGGY, browse, data, dropFiles, finished, folder, REFERENCE, root, safetensors, serve } from './helper.mjs';

test('two archives dropped are compared by themselves', async (t) => {
  const { url } = await serve(t);
  const page = await browse(t, url);
  await page.getByRole('heading', { name: 'Open tensors' }).waitFor();
  await dropFiles(page, '[data-slot=a]', [REFERENCE]);
  await page.locator('[data-slot=a] .kv').waitFor();
  assert.match(await page.locator('[data-slot=a]').innerText(), /39/);
  await dropFiles(page, '[data-slot=b]', [BUGGY]);
  await finished(page);
  assert.equal(await page.locator('.verdict h1').innerText(), 'Diverges in layer 1');
  assert.deepEqual(await page.locator('.model .nm').allInnerTexts(), ['reference.zip', 'constant_scale.tgz']);
  await page.waitForFunction(() => /#s=\w+&p=\d+/.test(location.hash));
  assert.doesNotMatch(page.url(), /[#&]t=/, 'the token does not stay in the address');
});

test('a path below the root opens, one outside is refused with a way out', async (t) => {
  const { url } = await serve(t, ['--root', path.join(root, 'demo')]);
  const page = await browse(t, url, { allow: ['403', '404', '422'] });
  const box = page.getByLabel('Path for A');
  await box.fill('/etc/passwd');
  await box.press('Enter');
  assert.match(await page.getByRole('alert').innerText(), /--root/);
  await page.getByRole('button', { name: /^Remove/ }).click();
  await box.fill(REFERENCE);
  await box.press('Enter');
  await page.locator('[data-slot=a] .kv').waitFor();
  await page.getByRole('button', { name: 'Explore A alone' }).click();
  await finished(page);
  assert.equal(await page.locator('.verdict h1').innerText(), '39 tensors');
});

test('a broken archive is named with the reason, and can be replaced', async (t) => {
  const { url } = await serve(t);
  const page = await browse(t, url, { allow: ['422'] });
  const broken = path.join(folder(t), 'broken.safetensors');
  writeFileSync(broken, Buffer.concat([Buffer.from([200, 0, 0, 0, 0, 0, 0, 0]), Buffer.from('{"w":{"dtype"')]));
  await dropFiles(page, '[data-slot=a]', [broken]);
  const said = await page.getByRole('alert').innerText();
  assert.ok(said.length > 20, said);
  await page.getByRole('button', { name: /^Remove/ }).click();
  await dropFiles(page, '[data-slot=a]', [REFERENCE]);
  await page.locator('[data-slot=a] .kv').waitFor();
});

test('formats are shown as the ends of names that people know', async (t) => {
  const { url } = await serve(t);
  const page = await browse(t, url);
  const listed = await page.locator('.fmts').innerText();
  for (const text of ['.pt', '.safetensors', '.gguf', '.h5', 'and folders']) assert.ok(listed.includes(text), text);
  await dropFiles(page, '[data-slot=a]', [data('tests/data/formats/single_tensor.pth')]);
  await page.locator('[data-slot=a] .kv').waitFor();
  assert.match(await page.locator('[data-slot=a] .kv').innerText(), /Format\s*\.pth/);
  assert.doesNotMatch(await page.locator('body').innerText(), /torch-zip|torch-legacy/);
});

test('an archive against loose files is a mixed session', async (t) => {
  const { url } = await serve(t);
  const page = await browse(t, url);
  const here = folder(t);
  const whole = safetensors(path.join(here, 'whole.safetensors'), { p: [[2], [1, 2]], q: [[3], [1, 2, 3]] });
  const loose = ['p', 'q'].map((name, k) =>
    safetensors(path.join(here, `${name}.safetensors`), { [name]: k ? [[3], [1, 2, 4]] : [[2], [1, 2]] }));
  await dropFiles(page, '[data-slot=a]', [whole]);
  await page.locator('[data-slot=a] .kv').waitFor();
  await dropFiles(page, '[data-slot=b]', loose);
  await page.getByRole('button', { name: 'Compare', exact: true }).click();
  await finished(page);
  assert.match(await page.locator('.model').nth(1).innerText(), /2 files/);
  assert.match(await page.locator('.legend').innerText(), /1\s*match[\s\S]*1\s*different/);
});

test('the demo is one click away, and is there again after a restart', async (t) => {
  const state = folder(t);
  const first = await serve(t, [], { state });
  const page = await browse(t, first.url, { allow: ['ERR_'] });
  await page.getByRole('button', { name: 'Try the demo' }).click();
  await finished(page);
  await page.locator('.det h2').waitFor();
  await first.kill();
  const second = await serve(t, [], { state });
  await page.goto(second.url);
  await page.locator('.recent tbody tr').first().click();
  await finished(page);
  assert.match(await page.locator('.verdict h1').innerText(), /^Diverges in layer \d/);
});
