// Fuzzy search for the palette: all letters in order, runs and starts of words count more.

const DASH = 45;
const DOT = 46;
const SLASH = 47;
const ZERO = 48;
const NINE = 57;
const UNDERSCORE = 95;

/** Whether a new word may start behind this letter. */
const endsWord = (code: number) =>
  code <= 32 ||
  code === DOT ||
  code === UNDERSCORE ||
  code === SLASH ||
  code === DASH ||
  (code >= ZERO && code <= NINE);

/** Both in small letters. Higher is better; null where a letter is missing. */
function points(hay: string, query: string): number | null {
  let at = 0;
  let total = 0;
  let run = 0;
  for (let i = 0; i < query.length; i++) {
    const letter = query[i];
    if (letter === ' ') {
      run = 0;
      continue;
    }
    const found = hay.indexOf(letter, at);
    if (found < 0) return null;
    run = found === at && at > 0 ? run + 1 : 1;
    const startsWord = found === 0 || endsWord(hay.charCodeAt(found - 1));
    total += run + (startsWord ? 3 : 0) - Math.min(3, (found - at) / 8);
    at = found + 1;
  }
  // One run of all letters counts as such wherever it stands, also behind a first one of some.
  const whole = hay.includes(query) ? (query.length * (query.length + 1)) / 2 : 0;
  return total + whole - hay.length / 100;
}

export const score = (text: string, query: string): number | null =>
  points(text.toLowerCase(), query.toLowerCase());

interface Hit<T> {
  item: T;
  points: number;
}

/** Puts a hit in its place among the best, which are few; equal ones keep their order. */
function keep<T>(hits: Hit<T>[], hit: Hit<T>, most: number) {
  if (hits.length === most && hit.points <= hits[most - 1].points) return;
  let at = hits.length;
  while (at > 0 && hits[at - 1].points < hit.points) at--;
  hits.splice(at, 0, hit);
  if (hits.length > most) hits.pop();
}

export function best<T>(
  items: Iterable<T>,
  text: (item: T) => string,
  query: string,
  most: number,
): T[] {
  const wanted = query.toLowerCase();
  const hits: Hit<T>[] = [];
  for (const item of items) {
    const found = query === '' ? 0 : points(text(item).toLowerCase(), wanted);
    if (found !== null) keep(hits, { item, points: found }, most);
    if (query === '' && hits.length >= most) break;
  }
  return hits.map((hit) => hit.item);
}

/**
 * A search that is typed letter by letter over very many names: these are made small once, and a
 * longer query only looks at what the shorter one found.
 */
export class Typed {
  private readonly names: string[];
  private query = '';
  private left: Uint32Array;

  constructor(count: number, name: (index: number) => string) {
    this.names = Array.from({ length: count }, (_, i) => name(i).toLowerCase());
    this.left = Uint32Array.from({ length: count }, (_, i) => i);
  }

  best(query: string, most: number): number[] {
    const wanted = query.toLowerCase();
    const among = this.query !== '' && wanted.startsWith(this.query) ? this.left : this.all();
    const hits: Hit<number>[] = [];
    const left = new Uint32Array(among.length);
    let n = 0;
    for (const index of among) {
      const found = wanted === '' ? 0 : points(this.names[index], wanted);
      if (found === null) continue;
      left[n++] = index;
      keep(hits, { item: index, points: found }, most);
      if (wanted === '' && hits.length >= most) break;
    }
    this.query = wanted;
    this.left = left.subarray(0, n);
    return hits.map((hit) => hit.item);
  }

  private all(): Uint32Array {
    return Uint32Array.from({ length: this.names.length }, (_, i) => i);
  }
}
