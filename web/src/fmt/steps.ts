// A layout step in a few words, for its chip.
import type { Step } from '../net/types';

const list = (value: unknown) => (Array.isArray(value) ? value.join(',') : String(value));

/** squeeze 0 · permute 1,0,2 · merge [76,512] · part 1 of 3 */
export function stepText(step: Step): string {
  const words = Object.entries(step)
    .filter(([key]) => key !== 'op' && key !== 'side')
    .map(([key, value]) => {
      const plain = ['axis', 'axes', 'order', 'shape', 'permutation', 'to'].includes(key);
      const text =
        typeof value === 'object' && !Array.isArray(value) ? JSON.stringify(value) : list(value);
      return plain ? text : `${key} ${text}`;
    });
  return [step.op, ...words].join(' ');
}
