// Paths while they are typed.

/** "/data/ll" → the folder "/data" and the start of a name "ll". */
export function splitPath(text: string): { dir: string | null; prefix: string } {
  const cut = text.lastIndexOf('/');
  if (cut < 0) return { dir: null, prefix: text };
  return { dir: cut === 0 ? '/' : text.slice(0, cut), prefix: text.slice(cut + 1) };
}
