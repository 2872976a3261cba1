// A file in chunks, three at a time; what has arrived is never sent again.
import * as api from '../net/api';
import { ApiError } from '../net/http';
import type { Source } from '../net/types';

const AT_ONCE = 3;
const RATE_MS = 4000;

export interface Progress {
  sent: number;
  size: number;
  bytesPerSec: number;
  etaMs: number | null;
}

/** The chunks that are not yet there. */
export function missing(
  chunks: number,
  received: readonly (readonly [number, number])[],
): number[] {
  const have = new Set<number>();
  for (const [from, to] of received) for (let k = from; k < to; k++) have.add(k);
  return Array.from({ length: chunks }, (_, k) => k).filter((k) => !have.has(k));
}

/** Bytes a second over the last few seconds. */
export class Rate {
  private marks: { time: number; bytes: number }[] = [];

  add(time: number, bytes: number): number {
    this.marks.push({ time, bytes });
    while (this.marks.length > 2 && time - this.marks[0].time > RATE_MS) this.marks.shift();
    const first = this.marks[0];
    return time > first.time ? ((bytes - first.bytes) / (time - first.time)) * 1000 : 0;
  }
}

const nameOf = (file: File) => `upload ${file.name} ${file.size} ${file.lastModified}`;

/** Goes on with an upload that was cut short, else begins one. */
async function begin(file: File): Promise<api.Upload> {
  const known = localStorage.getItem(nameOf(file));
  if (known) {
    try {
      return await api.uploadState(known);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }
  const made = await api.beginUpload(file.name, file.size);
  localStorage.setItem(nameOf(file), made.id);
  return made;
}

export async function upload(
  file: File,
  signal: AbortSignal,
  tell: (progress: Progress) => void,
): Promise<Source> {
  const place = await begin(file);
  const todo = missing(place.chunks, place.received);
  const bytesOf = (k: number) => Math.min(place.chunk, file.size - k * place.chunk);
  const left = todo.reduce((sum, k) => sum + bytesOf(k), 0);
  let sent = file.size - left;
  const rate = new Rate();
  const show = () => {
    const bytesPerSec = rate.add(performance.now(), sent);
    const etaMs = bytesPerSec > 0 ? ((file.size - sent) / bytesPerSec) * 1000 : null;
    tell({ sent, size: file.size, bytesPerSec, etaMs });
  };
  show();
  const worker = async () => {
    for (let k = todo.shift(); k !== undefined; k = todo.shift()) {
      signal.throwIfAborted();
      const from = k * place.chunk;
      await api.putChunk(place.id, k, file.slice(from, from + bytesOf(k)), signal);
      sent += bytesOf(k);
      show();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  localStorage.removeItem(nameOf(file));
  return api.completeUpload(place.id);
}
