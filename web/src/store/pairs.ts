// All rows of a session as columns: typed arrays and string blobs, never an object for each row.
import { type Columns, type Numbers, Strings } from '../net/columns';
import { STATUS, type Status } from '../net/wire';

const ALONE: ReadonlySet<Status> = new Set(['only_a', 'only_b', 'single']);

export class PairStore {
  n = 0;
  rev = -1;
  run = -1;
  private numbers = new Map<string, Numbers>();
  private strings = new Map<string, Strings>();
  /** Texts that changed after the columns came: column → row → text. */
  private changed = new Map<string, Map<number, string>>();
  /** Empty where all ids are the numbers of their rows, as they are unless some were left out. */
  private rowById = new Map<number, number>();
  private lower: string[] = [];

  /** Another object with the same columns: what is drawn from a store is drawn again. */
  renewed(): PairStore {
    return Object.assign(new PairStore(), this);
  }

  /** Takes all rows, or those that changed. */
  take(columns: Columns) {
    if (columns.full) this.replace(columns);
    else this.patch(columns);
    this.rev = columns.rev;
    this.run = columns.run;
  }

  private replace(columns: Columns) {
    this.n = columns.n;
    this.numbers = columns.numbers;
    this.strings = columns.strings;
    this.changed.clear();
    this.lower = [];
    this.rowById.clear();
    const ids = columns.numbers.get('id');
    if (ids?.some((id, row) => id !== row))
      ids.forEach((id, row) => {
        this.rowById.set(id, row);
      });
  }

  private patch(columns: Columns) {
    const ids = columns.numbers.get('id') ?? new Uint32Array(0);
    const rows = Int32Array.from(ids, (id) => this.row(id));
    // A column that is not there has nothing in any row.
    for (const name of columns.numbers.keys())
      if (!this.numbers.has(name))
        this.numbers.set(name, new Float64Array(this.n).fill(Number.NaN));
    for (const [name, mine] of this.numbers) {
      const values = columns.numbers.get(name);
      rows.forEach((row, i) => {
        if (row >= 0) mine[row] = values ? values[i] : Number.NaN;
      });
    }
    const names = [columns.strings, this.strings, this.changed].flatMap((each) => [...each.keys()]);
    for (const name of new Set(names)) {
      const texts = columns.strings.get(name);
      rows.forEach((row, i) => {
        if (row >= 0) this.patchText(name, row, texts?.at(i) ?? '');
      });
    }
  }

  private patchText(name: string, row: number, text: string) {
    if (this.text(name, row) === text) return;
    if (!this.changed.has(name)) this.changed.set(name, new Map());
    this.changed.get(name)!.set(row, text);
    delete this.lower[row];
  }

  num(name: string, row: number): number {
    const column = this.numbers.get(name);
    return column ? column[row] : Number.NaN;
  }

  column(name: string): Numbers | undefined {
    return this.numbers.get(name);
  }

  text(name: string, row: number): string {
    return this.changed.get(name)?.get(row) ?? this.strings.get(name)?.at(row) ?? '';
  }

  isText(name: string, row: number, word: string): boolean {
    const changed = this.changed.get(name)?.get(row);
    return changed === undefined
      ? (this.strings.get(name)?.is(row, word) ?? false)
      : changed === word;
  }

  id(row: number): number {
    return this.num('id', row);
  }

  row(id: number): number {
    if (this.rowById.size > 0) return this.rowById.get(id) ?? -1;
    return id >= 0 && id < this.n ? id : -1;
  }

  status(row: number): number {
    return this.num('status', row);
  }

  /** The name by which a row goes: that of a, or of b where there is no a. */
  name(row: number): string {
    return this.text('nameA', row) || this.text('nameB', row);
  }

  isPair(row: number): boolean {
    return !ALONE.has(STATUS[this.status(row)]);
  }

  /** Both names in lower case, for filters; made once. */
  haystack(row: number): string {
    const found = this.lower[row];
    if (found !== undefined) return found;
    const a = this.text('nameA', row);
    const b = this.text('nameB', row);
    const both = (a === b ? a : `${a}\n${b}`).toLowerCase();
    this.lower[row] = both;
    return both;
  }
}

/** Columns from plain rows; tests and the single-tensor mode use it. */
export function columnsOf(rows: Record<string, number | string>[], rev = 1): Columns {
  const columns: Columns = {
    rev,
    run: 1,
    full: true,
    n: rows.length,
    numbers: new Map(),
    strings: new Map(),
  };
  for (const name of Object.keys(rows[0] ?? {})) {
    const values = rows.map((row) => row[name]);
    if (typeof values[0] === 'string') columns.strings.set(name, Strings.of(values as string[]));
    else columns.numbers.set(name, Float64Array.from(values as number[]));
  }
  return columns;
}
