// The filter box: words, /regex/, Δ>1e-3, dtype:f16, shape:*×4096, and - before any of them.
import type { PairStore } from '../store/pairs';

type Test = (store: PairStore, row: number) => boolean;

export interface Filter {
  tests: Test[];
  /** What could not be understood, or ''. */
  error: string;
}

const METRIC: Record<string, string> = {
  Δ: 'maxAbs',
  d: 'maxAbs',
  max: 'maxAbs',
  mean: 'meanAbs',
  ratio: 'ratio',
  tol: 'ratio',
  cos: 'cosine',
  cosine: 'cosine',
  rel: 'relL2',
  ulp: 'ulpMax',
  size: 'elements',
  layer: 'layer',
};

function comparison(word: string): Test | null {
  const found = /^(Δ|[a-z]+)(<=|>=|<|>|=)([-+.\de]+)$/i.exec(word);
  const column = found ? METRIC[found[1] === 'Δ' ? 'Δ' : found[1].toLowerCase()] : undefined;
  const limit = found ? Number(found[3]) : Number.NaN;
  if (!found || !column || Number.isNaN(limit)) return null;
  const holds: Record<string, (x: number) => boolean> = {
    '<': (x) => x < limit,
    '>': (x) => x > limit,
    '<=': (x) => x <= limit,
    '>=': (x) => x >= limit,
    '=': (x) => x === limit,
  };
  return (store, row) => holds[found[2]](store.num(column, row));
}

/** '*' is any size, '…' any sizes before; '×', 'x' and ',' separate. A lone size fits anywhere. */
export function shapeFits(pattern: string, shape: string): boolean {
  const wanted = pattern.split(/[×x,]/);
  const sizes = shape === '' ? [] : shape.split(',');
  if (wanted.length === 1 && wanted[0] !== '*') return sizes.includes(wanted[0]);
  const open = wanted[0] === '…' || wanted[0] === '...';
  const tail = open ? wanted.slice(1) : wanted;
  if (open ? sizes.length < tail.length : sizes.length !== tail.length) return false;
  return tail.every((want, i) => {
    const size = sizes[sizes.length - tail.length + i];
    return want === '*' || want === size;
  });
}

function field(word: string): Test | null {
  const found = /^(dtype|shape|stage|by|layer|note|name):(.*)$/i.exec(word);
  if (!found) return null;
  const value = found[2];
  const either =
    (a: string, b: string, fits: (text: string) => boolean): Test =>
    (store, row) =>
      fits(store.text(a, row)) || fits(store.text(b, row));
  switch (found[1].toLowerCase()) {
    case 'dtype':
      return either('dtypeA', 'dtypeB', (text) => text === value);
    case 'shape':
      return either('shapeA', 'shapeB', (text) => shapeFits(value, text));
    case 'stage':
      return (store, row) => store.text('stage', row).includes(value);
    case 'by':
      return (store, row) => store.text('matchedBy', row).startsWith(value);
    case 'layer':
      return (store, row) => store.num('layer', row) === Number(value);
    case 'note':
      return (store, row) => store.num('note', row) > 0;
    default:
      return (store, row) => store.haystack(row).includes(value.toLowerCase());
  }
}

function regex(word: string): Test | string | null {
  const found = /^\/(.+)\/(i?)$/.exec(word);
  if (!found) return null;
  try {
    const pattern = new RegExp(found[1], found[2]);
    return (store, row) =>
      pattern.test(store.text('nameA', row)) || pattern.test(store.text('nameB', row));
  } catch (error) {
    return error instanceof Error ? error.message : 'not a regular expression';
  }
}

/** Words are separated by spaces; a regex may hold spaces. */
const words = (text: string) => text.match(/-?\/(?:\\.|[^/\\])+\/i?(?=\s|$)|\S+/g) ?? [];

export function parseFilter(text: string): Filter {
  const filter: Filter = { tests: [], error: '' };
  for (const whole of words(text)) {
    const negative = whole.length > 1 && whole.startsWith('-');
    const word = negative ? whole.slice(1) : whole;
    const pattern = regex(word);
    if (typeof pattern === 'string') {
      filter.error = pattern;
      continue;
    }
    const lower = word.toLowerCase();
    const test: Test =
      pattern ??
      comparison(word) ??
      field(word) ??
      ((store, row) => store.haystack(row).includes(lower));
    filter.tests.push(negative ? (store, row) => !test(store, row) : test);
  }
  return filter;
}

export const passes = (filter: Filter, store: PairStore, row: number): boolean =>
  filter.tests.every((test) => test(store, row));
