// The pictures in README.md show the page as it is: ./dev pictures takes them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileOf, picture, SIZE, THEMES } from '../../tools/pictures.mjs';
import { browse, serve } from './helper.mjs';

// Speed, edges of letters and the like; a changed sentence or panel is more.
const SHARE_MAX = 0.01;
const LEVELS = 48;

/** The share of pixels that are not of the same colour; 1 where the sizes differ. */
const difference = (page, one, other) =>
  page.evaluate(
    async ([images, levels]) => {
      const pixels = async (data) => {
        const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
        const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
        const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
        canvas.drawImage(bitmap, 0, 0);
        return canvas.getImageData(0, 0, bitmap.width, bitmap.height).data;
      };
      const [a, b] = await Promise.all(images.map(pixels));
      if (a.length !== b.length) return 1;
      let count = 0;
      for (let i = 0; i < a.length; i += 4)
        if ([0, 1, 2].some((k) => Math.abs(a[i + k] - b[i + k]) > levels)) count++;
      return count / (a.length / 4);
    },
    [[one, other].map((image) => image.toString('base64')), LEVELS],
  );

for (const theme of THEMES)
  test(`the picture of the page is current, ${theme}`, async (t) => {
    const { url } = await serve(t, [], { command: 'demo' });
    const page = await browse(t, url, { size: SIZE, theme });
    // A busy machine may draw late: look again for a while.
    let share = 1;
    for (let look = 0; look < 10 && share >= SHARE_MAX; look++)
      share = await difference(page, await picture(page), readFileSync(fileOf(theme)));
    assert.ok(share < SHARE_MAX, `${(100 * share).toFixed(1)} % of docs/page-${theme}.png is out of date: run ./dev pictures`);
  });
