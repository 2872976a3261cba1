// A layout step in a few words, for its chip: those of the command line.

import type { Step } from '../net/types';
import { counted } from './number';
import { shapeText } from './shape';

const list = (value: unknown): number[] => (Array.isArray(value) ? value.map(Number) : []);

/** squeeze axis 0 · permute [1, 0, 2] · part 0:96 of axis 2 · concat axis 1 of 2 ranks */
export function stepText(step: Step): string {
  const { op } = step;
  const axis = `axis ${step.axis}`;
  const ranks = counted(Number(step.ranks), 'rank');
  switch (op) {
    case 'permute':
      return `permute ${shapeText(list(step.order))}`;
    case 'split':
      return `split ${axis} to ${shapeText(list(step.sizes))}`;
    case 'truncate':
      return `truncate ${axis} to ${step.size}`;
    case 'select':
      return `part ${step.first}:${Number(step.first) + Number(step.size)} of ${axis}`;
    case 'replica':
    case 'sum':
      return `${op} of ${ranks}`;
    case 'concat':
    case 'concat_parts':
      return `concat ${axis} of ${ranks}`;
    case 'squeeze':
      return `squeeze ${axis}`;
    default:
      return op;
  }
}
