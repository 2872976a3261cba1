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

/** the whole result of a comparison */
export interface Report {
  schema: 'tensordiff.report/2';
  tool: Tool;
  a: Side;
  b: Side;
  summary: Summary;
  firstDivergence: Divergence | null;
  findings: Finding[];
  pairs: Pair[];
  onlyA: Unpaired[];
  onlyB: Unpaired[];
  analyses: Record<string, unknown>;
  metadata: Metadata[];
  notes: string[];
  nextDivergences: Divergence[];
  auxiliary: Auxiliary;
  conversion: Conversion[];
  logits?: Record<string, unknown>;
  baseline?: Baseline | null;
  trials?: Trial[];
}

/** what made the report */
export interface Tool {
  name: string;
  version: string;
}

/** one input */
export interface Side {
  path: string;
  format: string;
  tensors: number;
  elements: number;
  bytes: number;
  problems: Problem[];
}

/** a problem of a file */
export interface Problem {
  where: string;
  message: string;
  severity: 'note' | 'suspicious' | 'dangerous' | 'unreadable' | 'missing';
}

/** the counts and the verdict */
export interface Summary {
  pairs: number;
  identical: number;
  equal: number;
  close: number;
  sameShape: number;
  different: number;
  incomparable: number;
  error: number;
  onlyA: number;
  onlyB: number;
  verdict: 'same' | 'close' | 'shapes_match' | 'known' | 'different' | 'trouble';
  caveat: string | null;
  coverage: Coverage;
}

/** how much of both was compared */
export interface Coverage {
  compared: number;
  onlyA: number;
  onlyB: number;
  of: number;
}

/** a step that makes an error of its own: diagnosis.md */
export interface Divergence {
  pair: number;
  nameA: string;
  nameB: string;
  layer: number | null;
  stage: string | null;
  created: boolean;
  explanation: string;
}

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

/** two tensors that were compared */
export interface Pair {
  index: number;
  nameA: string;
  nameB: string;
  layer: number | null;
  stage: string | null;
  matchedBy: string;
  status: 'identical' | 'equal' | 'close' | 'same_shape' | 'different' | 'incomparable' | 'error';
  dtypeA: string;
  dtypeB: string;
  shapeA: number[];
  shapeB: number[];
  shape: number[] | null;
  alignment: Record<string, unknown>[];
  statsA: Stats;
  statsB: Stats;
  diff: Diff;
  message: string | null;
  verdict: 'match' | 'precision' | 'bug' | null;
  baseline: 'known' | 'grown' | 'new' | null;
  madeFromA: string | null;
  madeFromB: string | null;
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

/** a tensor without a partner */
export interface Unpaired {
  name: string;
  dtype: string;
  shape: number[];
  message: string | null;
  layerAbsent: boolean;
  notDumped: boolean;
  nearest: string | null;
  likeness: Num;
  why: string | null;
  baseline: 'known' | 'grown' | 'new' | null;
}

/** what the files say about themselves and differ in */
export interface Metadata {
  key: string;
  a: string | null;
  b: string | null;
}

/** tensors without a partner that are not weights, so not a difference */
export interface Auxiliary {
  a: Unpaired[];
  b: Unpaired[];
}

/** how the tensors of one kind were converted */
export interface Conversion {
  rule: string;
  a: string;
  b: string;
  pairs: number[];
  exceptions: number[];
}

/** against an earlier result */
export interface Baseline {
  holds: boolean;
  known: number;
  gone: number;
  new: string[];
  grown: string[];
}

/** a diagnosis that was tried */
export interface Trial {
  pair: number;
  code: string;
  outcome: string;
}
