// The statuses of a row, and the five classes in which the page shows them.

import { STATUS, type Status } from '../net/wire';

export { STATUS, type Status };

/** Each has a colour and a glyph of its own. */
export type Class = 'ok' | 'close' | 'bad' | 'nc' | 'na';
export const CLASSES: readonly Class[] = ['ok', 'close', 'bad', 'nc', 'na'];

const OF_STATUS: Record<Status, Class> = {
  pending: 'na',
  identical: 'ok',
  equal: 'ok',
  close: 'close',
  different: 'bad',
  incomparable: 'nc',
  error: 'nc',
  only_a: 'na',
  only_b: 'na',
  single: 'na',
  same_shape: 'na',
};

export const classOf = (status: Status): Class => OF_STATUS[status];
export const classOfCode: readonly Class[] = STATUS.map((status) => OF_STATUS[status]);

export const LABEL: Record<Class, string> = {
  ok: 'match',
  close: 'close',
  bad: 'different',
  nc: 'not comparable',
  na: 'unpaired',
};
export const CHIP: Record<Class, string> = {
  ok: 'Match',
  close: 'Close',
  bad: 'Different',
  nc: 'Not comparable',
  na: 'Unpaired',
};

const WORDS: Record<Status, string> = {
  pending: 'not compared yet',
  identical: 'Identical',
  equal: 'Equal',
  close: 'Within tolerance',
  different: 'Different',
  incomparable: 'Not comparable',
  error: 'Unreadable',
  only_a: 'Only in A',
  only_b: 'Only in B',
  single: 'Tensor',
  same_shape: 'Same shape',
};
export const statusText = (status: string): string => WORDS[status as Status] ?? status;
