// Findings and divergences in words.
import { num, toNumber } from '../fmt/number';
import type { Divergence, Finding } from '../net/types';

export const sureText = (finding: Finding) => {
  const sure = 100 * toNumber(finding.confidence);
  return `${sure > 99 && sure < 100 ? sure.toFixed(1) : Math.round(sure)} % sure`;
};

/** What is left of the difference once the cause is undone; empty where nothing was measured. */
export function residualText({ code, residualBefore, residualAfter }: Finding): string {
  if (residualBefore === null || residualAfter === null) return '';
  // That of the finite elements, where the others are the cause, explains nothing.
  if (code === 'nonfinite') return '';
  // A cause that was told by other means than undoing it leaves the error as it is.
  if (residualBefore === residualAfter) return `relative error ${num(residualBefore, 3)}`;
  const change = `${num(residualBefore, 3)} → ${num(residualAfter, 3)}`;
  return `relative error ${change} with this cause undone`;
}

const ERROR = /relative error [^;→]*/;

/** Why it diverges, and what its cause leaves of that: an error that both have is said once. */
export function evidenceText(divergence: Divergence, cause: Finding | undefined): string {
  const residual = cause ? residualText(cause) : '';
  const said = divergence.explanation;
  if (residual.includes('→') && ERROR.test(said)) return said.replace(ERROR, residual);
  return [said, ERROR.test(said) ? '' : residual].filter(Boolean).join('; ');
}

/** "layer 2, pre_mlp", or the name. */
export const placeText = ({ layer, stage, nameA, nameB }: Divergence) =>
  layer !== null && stage ? `layer ${layer}, ${stage}` : (nameA ?? nameB);
