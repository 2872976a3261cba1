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

export async function rows(id: string, since: number | null, signal?: Signal): Promise<Columns> {
  const query = since === null ? '' : `?since=${since}`;
  const answer = await ask(`/sessions/${id}/pairs${query}`, {
    signal,
    accept: 'application/vnd.tensordiff.columns',
  });
  return parseColumns(await answer.arrayBuffer());
}

export const pairings = (id: string) => askJson<T.Pairings>(`/sessions/${id}/pairings`);
export const putPairings = (
  id: string,
  json: { pairs: { a: string; b: string }[]; only?: boolean; fingerprint?: string },
) => askJson<T.Started>(`/sessions/${id}/pairings`, { method: 'PUT', json });
export const putOrder = (id: string, ids: number[]) =>
  askJson<{ rev: number }>(`/sessions/${id}/order`, { method: 'PUT', json: { ids } });
export const exportAs = (id: string, format: string, show?: string[]) =>
  askJson<{ id: string; url: string; name: string }>(
    `/sessions/${id}/export`,
    post(show ? { format, show } : { format }),
  );

const at = (s: string, p: number) => `/sessions/${s}/pairs/${p}`;
export const pair = (s: string, p: number, signal?: Signal) =>
  askJson<T.Pair>(at(s, p), { signal });
export const patchPair = (s: string, p: number, dims: string | null) =>
  askJson<T.Started>(at(s, p), { method: 'PATCH', json: { dims } });
export const putNote = (s: string, p: number, note: string) =>
  askJson<void>(`${at(s, p)}/note`, { method: 'PUT', json: { text: note } });

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

const query = (fields: Record<string, string | number | undefined>) =>
  Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${text(String(value))}`)
    .join('&');

/** Values of a window of a plane, in float64, a plane after the other. */
export async function slice(s: string, p: number, q: SliceQuery, signal?: Signal): Promise<Slice> {
  const { stored, ...rest } = q;
  const fields = { ...rest, as: 'f64', layout: stored ? 'stored' : undefined };
  const answer = await ask(`${at(s, p)}/slice?${query(fields)}`, { signal });
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

export const element = (s: string, p: number, where: string, signal?: Signal) =>
  askJson<T.Element>(`${at(s, p)}/element?${where}`, { signal });
export const axes = (s: string, p: number, signal?: Signal) =>
  askJson<{ axes: T.AxisProfile[] }>(`${at(s, p)}/axes`, { signal });
export const pyramid = (s: string, p: number, where: string, signal?: Signal) =>
  askJson<T.Pyramid>(`${at(s, p)}/pyramid?at=${text(where)}`, { signal });
export const histogram = (s: string, p: number, of: string, bins: number, signal?: Signal) =>
  askJson<T.Histogram>(`${at(s, p)}/histogram?of=${of}&bins=${bins}`, { signal });
export const worst = (s: string, p: number, count: number, signal?: Signal) =>
  askJson<{ worst: T.Hit[] }>(`${at(s, p)}/worst?count=${count}`, { signal });
export const find = (s: string, p: number, what: Record<string, unknown>, signal?: Signal) =>
  askJson<T.Found>(`${at(s, p)}/find`, { ...post(what), signal });

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
  const path = `${at(s, p)}/tile/${t.plane}/${t.level}/${t.ty}/${t.tx}`;
  const fields = { at: t.at, v: t.v, rough: t.rough ? 1 : undefined };
  const answer = await ask(`${path}?${query(fields)}`, { signal });
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
