import { expect, test } from 'vitest';
import { parseColumns } from './columns';

/** The format as the server writes it, by hand. */
function encode(): ArrayBuffer {
  const columns = [
    { name: 'id', type: 'u32', offset: 0, bytes: 8 },
    { name: 'ratio', type: 'f64', offset: 8, bytes: 16 },
    { name: 'nameA', type: 'str', offset: 24, bytes: 12 + 6 },
  ];
  let header = JSON.stringify({ rev: 7, run: 2, full: true, n: 2, columns });
  while (header.length % 8 !== 0) header += ' ';
  const buffer = new ArrayBuffer(8 + header.length + 48);
  const bytes = new Uint8Array(buffer);
  bytes.set(new TextEncoder().encode('TDBC'));
  new DataView(buffer).setUint32(4, header.length, true);
  bytes.set(new TextEncoder().encode(header), 8);
  const at = 8 + header.length;
  new Uint32Array(buffer, at, 2).set([20, 21]);
  new Float64Array(buffer, at + 8, 2).set([4.5, Number.NaN]);
  new Uint32Array(buffer, at + 24, 3).set([0, 4, 6]);
  bytes.set(new TextEncoder().encode('w.Δé'), at + 36);
  return buffer;
}

test('columns are views of the answer', () => {
  const columns = parseColumns(encode());
  expect([columns.rev, columns.run, columns.full, columns.n]).toEqual([7, 2, true, 2]);
  expect([...columns.numbers.get('id')!]).toEqual([20, 21]);
  expect([...columns.numbers.get('ratio')!]).toEqual([4.5, Number.NaN]);
  expect([columns.strings.get('nameA')!.at(0), columns.strings.get('nameA')!.at(1)]).toEqual([
    'w.Δ',
    'é',
  ]);
});

test('anything else is refused', () => {
  expect(() => parseColumns(new ArrayBuffer(4))).toThrow('unknown format');
  expect(() => parseColumns(new ArrayBuffer(64))).toThrow('unknown format');
});
