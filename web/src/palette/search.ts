// Fuzzy search for the palette: all letters in order, runs and starts of words count more.

/** Higher is better; null where a letter is missing. */
export function score(text: string, query: string): number | null {
  const hay = text.toLowerCase();
  let at = 0;
  let total = 0;
  let run = 0;
  for (const letter of query.toLowerCase()) {
    if (letter === ' ') {
      run = 0;
      continue;
    }
    const found = hay.indexOf(letter, at);
    if (found < 0) return null;
    run = found === at && at > 0 ? run + 1 : 1;
    const startsWord = found === 0 || /[\s._/\-\d]/.test(hay[found - 1]);
    total += run + (startsWord ? 3 : 0) - Math.min(3, (found - at) / 8);
    at = found + 1;
  }
  return total - hay.length / 100;
}

export interface Hit<T> {
  item: T;
  points: number;
}

export function best<T>(
  items: Iterable<T>,
  text: (item: T) => string,
  query: string,
  most: number,
): T[] {
  const hits: Hit<T>[] = [];
  for (const item of items) {
    const points = query === '' ? 0 : score(text(item), query);
    if (points !== null) hits.push({ item, points });
    if (query === '' && hits.length >= most) break;
  }
  hits.sort((x, y) => y.points - x.points);
  return hits.slice(0, most).map((hit) => hit.item);
}
