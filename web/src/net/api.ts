// The routes, one function each.
import { type Columns, parseColumns } from './columns';
import { type Ask, ask, askJson } from './http';
import type * as T from './types';

type Signal = AbortSignal | undefined;
const post = (json: unknown): Ask => ({ method: 'POST', json });
const text = encodeURIComponent;

export const health = () => askJson<T.Health>('/health');
export const listFiles = (dir: string | null, prefix: string, signal?: Signal) =>
  askJson<T.FsList>(`/fs?${dir === null ? '' : `dir=${text(dir)}&`}prefix=${text(prefix)}`, {
    signal,
  });
export const openPath = (path: string) => askJson<T.Source>('/sources', post({ path }));
export const source = (id: string) => askJson<T.Source>(`/sources/${id}`);
export const demo = () => askJson<T.Started>('/demo', post({}));

export const sessions = () => askJson<{ sessions: T.Recent[] }>('/sessions');
export const session = (id: string, signal?: Signal) =>
  askJson<T.Session>(`/sessions/${id}`, { signal });
export const startSession = (what: { a: string[]; b: string[]; mode?: T.Mode }) =>
  askJson<T.Started>('/sessions', post(what));
export const patchSession = (id: string, change: Record<string, unknown>) =>
  askJson<T.Started>(`/sessions/${id}`, { method: 'PATCH', json: change });
export const deleteSession = (id: string) => askJson<void>(`/sessions/${id}`, { method: 'DELETE' });
export const reload = (id: string) => askJson<T.Started>(`/sessions/${id}/reload`, post({}));
export const cancelJob = (id: string) => askJson<void>(`/jobs/${id}`, { method: 'DELETE' });

/** What the list shows, sorts and filters by; the rest comes with a pair that is opened. */
const COLUMNS = [
  'id,order,status,layer,stage,group,nameA,nameB,matchedBy,dtypeA,dtypeB,shapeA,shapeB',
  'elements,steps,maxAbs,meanAbs,relL2,cosine,ulpMax,ratio,likeness,nearest,note',
].join();

export async function rows(id: string, since: number | null, signal?: Signal): Promise<Columns> {
  const query = since === null ? '' : `&since=${since}`;
  const answer = await ask(`/sessions/${id}/pairs?columns=${COLUMNS}${query}`, {
    signal,
    accept: 'application/vnd.tensordiff.columns',
  });
  return parseColumns(await answer.arrayBuffer());
}

export const pairings = (id: string) => askJson<T.Pairings>(`/sessions/${id}/pairings`);
export const putPairings = (
  id: string,
  json: {
    pairs: { a: string; b: string }[];
    only?: boolean;
    apart?: { a: string; b: string }[];
    fingerprint?: string;
  },
) => askJson<T.Started>(`/sessions/${id}/pairings`, { method: 'PUT', json });
export const putOrder = (id: string, run: number, ids: number[]) =>
  askJson<{ rev: number }>(`/sessions/${id}/order?run=${run}`, { method: 'PUT', json: { ids } });
export const exportAs = (id: string, format: string, show?: string[]) =>
  askJson<{ id: string; url: string; name: string }>(
    `/sessions/${id}/export`,
    post(show ? { format, show } : { format }),
  );

const at = (s: string, p: number) => `/sessions/${s}/pairs/${p}`;
/** In another run the number means another pair: then the server refuses. */
export const pair = (s: string, p: number, run: number, apply: number | null, signal?: Signal) =>
  askJson<T.Pair>(`${at(s, p)}?run=${run}${apply === null ? '' : `&apply=${apply}`}`, { signal });
export const patchPair = (s: string, p: number, run: number, dims: string | null) =>
  askJson<T.Started>(`${at(s, p)}?run=${run}`, { method: 'PATCH', json: { dims } });
export const putNote = (s: string, p: number, run: number, note: string) =>
  askJson<void>(`${at(s, p)}/note?run=${run}`, { method: 'PUT', json: { text: note } });

type Fields = Record<string, string | number | undefined>;
const query = (fields: Fields) =>
  Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${text(String(value))}`)
    .join('&');

/** Which values: with `v` the server refuses when the pair of this number is another one now. */
export interface Of {
  id: number;
  v: string;
}
/** Values with a finding applied to A have its number at the end of their version. */
const appliedIn = (v: string) => /t(\d+)$/.exec(v)?.[1];
const valuesAt = (s: string, of: Of, what: string, fields: Fields = {}) =>
  `${at(s, of.id)}/${what}?${query({ ...fields, apply: appliedIn(of.v), v: of.v })}`;

export interface SliceQuery {
  plane: string;
  at: string;
  y?: string;
  x?: string;
  as?: 'f32' | 'f64' | 'raw';
  stored?: boolean;
}

export interface Slice {
  rows: number;
  cols: number;
  planes: string[];
  values: Float64Array[];
}

/** Values of a window of a plane, in float64, a plane after the other. */
export async function slice(s: string, of: Of, q: SliceQuery, signal?: Signal): Promise<Slice> {
  const { stored, ...rest } = q;
  const fields = { ...rest, as: 'f64', layout: stored ? 'stored' : undefined };
  const answer = await ask(valuesAt(s, of, 'slice', fields), { signal });
  const body = await answer.arrayBuffer();
  const [count, rowCount, columnCount] = numbersOf(answer.headers.get('X-Shape'));
  const offsets = numbersOf(answer.headers.get('X-Offsets'));
  const planes = (answer.headers.get('X-Planes') ?? q.plane).split(',');
  const values = Array.from({ length: count }, (_, k) => {
    const from = offsets[k] ?? k * rowCount * columnCount * 8;
    return new Float64Array(body, from, rowCount * columnCount);
  });
  return { rows: rowCount, cols: columnCount, planes, values };
}

const numbersOf = (header: string | null) =>
  header ? header.split(',').map((word) => Number(word)) : [];

export const element = (s: string, of: Of, place: readonly number[], signal?: Signal) =>
  askJson<T.Element>(valuesAt(s, of, 'element', { at: place.join(',') }), { signal });
/** With `words`, each row is taken as the logits of a position. */
export const axes = (s: string, of: Of, words: boolean, signal?: Signal) =>
  askJson<{ axes: T.AxisProfile[]; predictions?: T.Predictions }>(
    valuesAt(s, of, 'axes', words ? { predictions: 1 } : {}),
    { signal },
  );
export const pyramid = (s: string, of: Of, where: string, signal?: Signal) =>
  askJson<T.Pyramid>(valuesAt(s, of, 'pyramid', { at: where }), { signal });
export const histogram = (s: string, of: Of, what: string, bins: number, signal?: Signal) =>
  askJson<T.Histogram>(valuesAt(s, of, 'histogram', { of: what, bins }), { signal });
export const worst = (s: string, of: Of, count: number, signal?: Signal) =>
  askJson<{ worst: T.Hit[] }>(valuesAt(s, of, 'worst', { count }), { signal });
export const find = (s: string, of: Of, what: Record<string, unknown>, signal?: Signal) =>
  askJson<T.Found>(valuesAt(s, of, 'find'), { ...post(what), signal });

export interface TilePlace {
  plane: 'a' | 'b' | 'd';
  level: number;
  ty: number;
  tx: number;
  at: string;
  v: string;
}

export interface Tile {
  rows: number;
  cols: number;
  values: Float32Array;
  /** From a few elements of each cell only. */
  rough: boolean;
}

export async function tile(
  s: string,
  p: number,
  t: TilePlace & { rough: boolean },
  signal?: Signal,
): Promise<Tile> {
  const what = `tile/${t.plane}/${t.level}/${t.ty}/${t.tx}`;
  const fields = { at: t.at, rough: t.rough ? 1 : undefined };
  const answer = await ask(valuesAt(s, { id: p, v: t.v }, what, fields), { signal });
  const [rowCount, cols] = numbersOf(answer.headers.get('X-Shape'));
  const values = new Float32Array(await answer.arrayBuffer());
  return { rows: rowCount, cols, values, rough: answer.headers.has('X-Rough') };
}

export interface Upload {
  id: string;
  name: string;
  size: number;
  chunk: number;
  chunks: number;
  received: [number, number][];
}
export const beginUpload = (name: string, size: number) =>
  askJson<Upload>('/uploads', post({ name, size }));
export const uploadState = (id: string) => askJson<Upload>(`/uploads/${id}`);
export const putChunk = (id: string, k: number, body: Blob, signal?: Signal) =>
  ask(`/uploads/${id}/${k}`, { method: 'PUT', body, signal, unqueued: true });
export const completeUpload = (id: string) =>
  askJson<T.Source>(`/uploads/${id}/complete`, post({}));
export const dropUpload = (id: string) => askJson<void>(`/uploads/${id}`, { method: 'DELETE' });
