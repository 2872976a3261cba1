// What the server says, as in docs/http-api.md.

import type {
  Conclusion,
  Conversion,
  Diff,
  Divergence,
  Finding,
  Num,
  Pair as ReportPair,
  Summary as ReportSummary,
  Stats,
  Status,
} from './wire';

export type { Divergence, Finding, Num } from './wire';

export interface Source {
  id: string;
  name: string;
  kind: 'path' | 'upload';
  path: string | null;
  format: string;
  files: number;
  bytes: number;
  tensors: number;
  elements: number;
  state: 'ready' | 'stale' | 'gone';
  problems: { where: string; message: string }[];
}

export interface Health {
  version: string;
  threads: number;
  limits: { upload: number; chunk: number; slice: number; json: number };
  /** Extensions are separated by spaces. */
  formats: { name: string; summary: string; extensions: string }[];
  matchers: { name: string; summary: string }[];
  exports: string[];
  stages: string[];
  roots: string[];
  open: string | null;
  /** Changed files are to be compared again at once. */
  watch: boolean;
}

export interface FsList {
  dir: string;
  parent: string | null;
  entries: {
    name: string;
    path: string;
    kind: 'file' | 'folder';
    bytes: number;
    format: string | null;
  }[];
  more: boolean;
}

export type Mode = 'compare' | 'explore' | 'mixed';
export type State =
  | 'matching'
  | 'comparing'
  | 'explaining'
  | 'done'
  | 'failed'
  | 'cancelled'
  | 'stale';

export interface Policy {
  atol: number | null;
  rtol: number | null;
  equalNan: boolean;
}

export interface Match {
  strategies: string[];
  fuzzyThreshold: number | null;
  align: boolean;
  regex: string | null;
}

export interface Session {
  id: string;
  name: string;
  mode: Mode;
  rev: number;
  run: number;
  state: State;
  error: string | null;
  job: string | null;
  created: number;
  updated: number;
  a: Source[];
  b: Source[];
  policy: Policy;
  match: Match;
  fingerprint: string;
  progress: {
    done: number;
    of: number;
    bytes: number;
    bytesTotal: number;
    bytesPerSec: number;
    etaMs: number | null;
  };
  summary: Summary;
  firstDivergence: Divergence | null;
  nextDivergences: Divergence[];
  findings: Finding[];
  notes: string[];
  ordered: boolean;
  /** Whether the pairs are steps of a run, in order; else they are weights. */
  steps: boolean;
  conversion: ConversionRule[];
}

/** What was done to all tensors of one kind; names have # for numbers. */
export interface ConversionRule extends Omit<Conversion, 'pairs'> {
  tensors: number;
}

export interface Summary extends Omit<ReportSummary, 'verdict' | 'caveat' | 'coverage'> {
  pending: number;
  verdict: Conclusion | null;
}

export interface Recent {
  id: string;
  name: string;
  mode: Mode;
  state: State;
  verdict: Summary['verdict'];
  pairs: number;
  created: number;
  updated: number;
  a: string;
  b: string;
  manual?: number;
}

export interface Step {
  op: string;
  [key: string]: unknown;
}

export interface Side {
  name: string;
  dtype: string;
  shape: number[];
  strides: number[] | null;
  bytes: number;
  stats: Stats | null;
}

export interface Metrics extends Diff {
  snrDb: Num;
  ratio: Num;
}

export interface Pair
  extends Pick<ReportPair, 'verdict' | 'layer' | 'stage' | 'matchedBy' | 'message'> {
  id: number;
  status: Status;
  note: string | null;
  /** What the user said of the axes. */
  dims: string | null;
  a: Side | null;
  b: Side | null;
  shape: number[] | null;
  /** What each axis is ("token", "head"); empty, or an empty word, where that is not known. */
  axes: string[];
  transforms: { a: Step[]; b: Step[] };
  metrics: Metrics | null;
  introduced: boolean | null;
  findings: Finding[];
  numpy: { a: string | null; b: string | null };
  /** Which findings can be applied to A, and the one that is: A's values are T(A) then. */
  applicable: number[];
  applied: number | null;
  v: string;
}

export interface Value {
  text: string;
  value: Num;
  bits: string;
}

export interface Element {
  at: number[];
  flat: string;
  a: Value | null;
  b: Value | null;
  diff: Num;
  rel: Num;
  ulp: Num;
  tolerance: Num;
  ratio: Num;
}

export interface Domain {
  min: Num;
  max: Num;
  p1: Num;
  p99: Num;
}

export interface Pyramid {
  w: number;
  h: number;
  tile: number;
  levels: number;
  domain: Partial<Record<'a' | 'b' | 'd', Domain>>;
  v: string;
}

export interface Histogram {
  of: string;
  scale: 'log2' | 'linear';
  edges: Num[];
  counts: number[];
  under: number;
  over: number;
  zero: number;
  nonfinite: number;
}

export interface Hit {
  flat: string;
  at: number[];
  a: Num;
  b: Num;
  distance?: Num;
}

export interface Found {
  hits: Hit[];
  scanned: number;
  done: boolean;
  next: string | null;
  count?: number;
  countDone?: boolean;
}

export interface AxisProfile {
  axis: number;
  size: number;
  perBin: number;
  maxAbs: Num[];
  meanAbs: Num[];
  nonfinite: number[];
}

/** What two runs predict, by position: the worst of each stretch. */
export interface Predictions {
  positions: number;
  perBin: number;
  kl: Num[];
  otherTop: number[];
  unusable: number;
}

export interface Pairings {
  fingerprint: string;
  pairs: { a: string; b: string; by: string }[];
  only: boolean;
  apart: { a: string; b: string }[];
  stale: { a: string; b: string; why: string }[];
}

export interface Started {
  id: string;
  rev: number;
  run: number;
  job: string | null;
}
