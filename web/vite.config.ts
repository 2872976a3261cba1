// Builds the page into dist/, which is committed and embedded in the program.
import { defineConfig } from 'vite';

export default defineConfig({
  base: './',
  // A page under default-src 'self' loads no data: URL, so every asset is a file of its own.
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  test: { include: ['src/**/*.test.ts'] },
});
