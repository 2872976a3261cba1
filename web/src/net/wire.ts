// Made by tools/update_schema out of the tables of src/report/wire.h.

/** A number, or why it is none. */
export type Num = number | 'nan' | 'inf' | '-inf' | null;

/** The statuses of a row, by their codes in the columns. */
export const STATUS = [
  'pending',
  'identical',
  'equal',
  'close',
  'different',
  'incomparable',
  'error',
  'only_a',
  'only_b',
  'single',
  'same_shape',
] as const;
export type Status = (typeof STATUS)[number];

export const CONCLUSIONS = [
  'same',
  'close',
  'shapes_match',
  'known',
  'different',
  'trouble',
] as const;
export type Conclusion = (typeof CONCLUSIONS)[number];

/** what kind of difference a pair shows: diagnosis.md */
export interface Finding {
  code: string;
  pair: number;
  confidence: Num;
  explanation: string;
  parameters: Record<string, unknown>;
  residualBefore: Num;
  residualAfter: Num;
  convention: boolean;
  evidence: Evidence | null;
}

/** a few values to check by eye */
export interface Evidence {
  at: number[];
  a: Num[];
  b: Num[];
  model: Num[] | null;
}

/** what one side looks like */
export interface Stats {
  mean: Num;
  std: Num;
  min: Num;
  max: Num;
  norm: Num;
  zeros: number;
  nan: number;
  inf: number;
}

/** how far A and B are apart: metrics.md */
export interface Diff {
  compared: number;
  equal: number;
  maxAbs: Num;
  maxAbsAt: number[] | null;
  aThere: Num;
  bThere: Num;
  meanAbs: Num;
  mse: Num;
  rmse: Num;
  maxRel: Num;
  meanRel: Num;
  relL2: Num;
  cosine: Num;
  pcc: Num;
  normRatio: Num;
  ulpMax: number | null;
  nonfiniteMismatch: number;
  nonfiniteAgreeing: number;
  exceeding: number;
  atol: Num;
  rtol: Num;
  rtolNeeded: Num;
}
