// What to look for, from a few words.

export interface Wanted {
  in: 'a' | 'b' | 'd' | 'tol';
  op?: 'range' | 'eq' | 'nan' | 'inf';
  lo?: number;
  hi?: number;
}

/** "nan", "inf", "0.5", "1..2", "1:2", ">3", "<-1", each with an optional side: "b: >3". */
export function parseWanted(text: string): Wanted | null {
  const found = /^(?:(a|b|d|Δ)\s*:)?\s*(.+)$/i.exec(text.trim());
  if (!found) return null;
  const where = (found[1] ?? 'a').toLowerCase().replace('δ', 'd') as 'a' | 'b' | 'd';
  const rest = found[2].trim().toLowerCase();
  // A dot belongs to the number unless another follows: 4..5 is a range.
  const number = '([-+]?(?:\\d+(?:\\.(?!\\.)\\d*)?|\\.\\d+)(?:e[-+]?\\d+)?)';
  if (rest === 'nan') return { in: where, op: 'nan' };
  if (/^[-+]?inf(inity)?$/.test(rest)) return { in: where, op: 'inf' };
  if (rest === 'tol' || rest === 'beyond') return { in: 'tol' };
  const range = new RegExp(`^${number}\\s*(?:\\.\\.|:)\\s*${number}$`).exec(rest);
  if (range) return { in: where, op: 'range', lo: Number(range[1]), hi: Number(range[2]) };
  const more = new RegExp(`^>=?\\s*${number}$`).exec(rest);
  if (more) return { in: where, op: 'range', lo: Number(more[1]) };
  const less = new RegExp(`^<=?\\s*${number}$`).exec(rest);
  if (less) return { in: where, op: 'range', hi: Number(less[1]) };
  const equal = new RegExp(`^=?\\s*${number}$`).exec(rest);
  return equal ? { in: where, op: 'eq', lo: Number(equal[1]) } : null;
}
