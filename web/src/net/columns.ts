// The columns format of the server: "TDBC", a JSON header, then little-endian arrays.

export type Numbers = Uint8Array | Uint32Array | Int32Array | Float64Array;

/** n strings in one blob. */
export class Strings {
  private static readonly decoder = new TextDecoder();
  /** The blob as one text where each byte is a letter: slices of it cost next to nothing. */
  private whole: string | null | undefined;

  constructor(
    private readonly offsets: Uint32Array,
    private readonly text: Uint8Array,
  ) {}

  get length() {
    return this.offsets.length - 1;
  }

  at(row: number): string {
    const from = this.offsets[row];
    const to = this.offsets[row + 1];
    if (from === to) return '';
    if (this.whole === undefined) {
      const decoded = Strings.decoder.decode(this.text);
      this.whole = decoded.length === this.text.length ? decoded : null;
    }
    if (this.whole !== null) return this.whole.slice(from, to);
    return Strings.decoder.decode(this.text.subarray(from, to));
  }

  /** Whether a text is this word, which has letters of ASCII only. */
  is(row: number, word: string): boolean {
    return this.offsets[row + 1] - this.offsets[row] === word.length && this.at(row) === word;
  }

  static of(words: readonly string[]): Strings {
    const parts = words.map((word) => new TextEncoder().encode(word));
    const offsets = new Uint32Array(parts.length + 1);
    parts.forEach((part, i) => {
      offsets[i + 1] = offsets[i] + part.length;
    });
    const text = new Uint8Array(offsets[parts.length]);
    parts.forEach((part, i) => {
      text.set(part, offsets[i]);
    });
    return new Strings(offsets, text);
  }
}

export interface Columns {
  rev: number;
  run: number;
  full: boolean;
  n: number;
  numbers: Map<string, Numbers>;
  strings: Map<string, Strings>;
}

interface Entry {
  name: string;
  type: 'u8' | 'u32' | 'i32' | 'f64' | 'str';
  offset: number;
  bytes: number;
}

function numbersAt(buffer: ArrayBuffer, at: number, type: Entry['type'], n: number): Numbers {
  switch (type) {
    case 'u8':
      return new Uint8Array(buffer, at, n);
    case 'i32':
      return new Int32Array(buffer, at, n);
    case 'f64':
      return new Float64Array(buffer, at, n);
    default:
      return new Uint32Array(buffer, at, n);
  }
}

export function parseColumns(buffer: ArrayBuffer): Columns {
  const view = new DataView(buffer);
  if (buffer.byteLength < 8 || view.getUint32(0, false) !== 0x54444243)
    throw new Error('the server sent rows in an unknown format');
  const length = view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const start = 8 + length;
  const columns: Columns = { ...header, numbers: new Map(), strings: new Map() };
  for (const { name, type, offset, bytes } of header.columns as Entry[]) {
    const at = start + offset;
    if (type === 'str') {
      const head = 4 * (columns.n + 1);
      const offsets = new Uint32Array(buffer, at, columns.n + 1);
      columns.strings.set(
        name,
        new Strings(offsets, new Uint8Array(buffer, at + head, bytes - head)),
      );
    } else {
      columns.numbers.set(name, numbersAt(buffer, at, type, columns.n));
    }
  }
  return columns;
}
