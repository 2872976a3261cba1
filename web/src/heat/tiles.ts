// Tiles by name, the least recently used dropped first.

import type { Tile, TilePlace } from '../net/api';
import * as api from '../net/api';

const BYTES_MAX = 256 * 1024 * 1024;

export class TileCache {
  private tiles = new Map<string, Tile>();
  private bytes = 0;

  constructor(private readonly bytesMax = BYTES_MAX) {}

  get(key: string): Tile | undefined {
    const tile = this.tiles.get(key);
    if (tile) {
      // Again at the end of the map: the front is what was not used for longest.
      this.tiles.delete(key);
      this.tiles.set(key, tile);
    }
    return tile;
  }

  put(key: string, tile: Tile) {
    const old = this.tiles.get(key);
    if (old) this.bytes -= old.values.byteLength;
    this.tiles.delete(key);
    this.tiles.set(key, tile);
    this.bytes += tile.values.byteLength;
    for (const [oldest, { values }] of this.tiles) {
      if (this.bytes <= this.bytesMax || oldest === key) break;
      this.tiles.delete(oldest);
      this.bytes -= values.byteLength;
    }
  }

  get size() {
    return this.tiles.size;
  }
}

const cache = new TileCache();

export const tileKey = (session: string, pair: number, t: TilePlace) =>
  [session, pair, t.v, t.at, t.plane, t.level, t.ty, t.tx].join('|');

export const cached = (key: string) => cache.get(key);

/** Puts a tile into the cache. One of a large plane comes twice: rough at once, then as it is. */
export async function fetchTile(
  session: string,
  pair: number,
  place: TilePlace,
  signal: AbortSignal,
  onRough: () => void,
) {
  const key = tileKey(session, pair, place);
  const ask = async (rough: boolean) => {
    const tile = await api.tile(session, pair, { ...place, rough }, signal);
    cache.put(key, tile);
    return tile;
  };
  const known = cache.get(key) ?? (await ask(true));
  if (!known.rough) return;
  onRough();
  await ask(false);
}
