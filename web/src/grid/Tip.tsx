// The tooltip of a value: exact decimals, bits, index, flat index, difference, ULP, tolerance.
import { signal } from '@preact/signals';
import { digits, num, sig, times, tolerance, toNumber } from '../fmt/number';
import { parseShape, placeOf } from '../fmt/shape';
import type { Element, Pair } from '../net/types';
import { element, probe, samePlace } from '../store/probe';
import * as state from '../store/state';
import * as view from '../store/view';
import { Glyph, sideName } from '../ui/parts';
import { placeOfCell } from './Grid2D';

interface Anchor {
  x: number;
  y: number;
  pinned: boolean;
}
export const anchor = signal<Anchor | null>(null);

const WIDE_PX = 310;
const TALL_PX = 170;

function anchorAt(cell: Element2, pinned: boolean): Anchor {
  const box = cell.getBoundingClientRect();
  const x = Math.max(4, Math.min(box.right + 6, window.innerWidth - WIDE_PX - 4));
  const below = box.bottom + 6 + TALL_PX < window.innerHeight;
  return { x, y: below ? box.bottom + 6 : Math.max(4, box.top - TALL_PX - 6), pinned };
}
type Element2 = globalThis.Element;

export function showTip(event: MouseEvent) {
  const cell = (event.target as HTMLElement).closest<HTMLElement>('td[data-x]');
  if (!cell || (!view.linked.value && cell.dataset.side === 'b')) return;
  const flat = cell.closest<HTMLElement>('[data-flat-shape]')?.dataset.flatShape;
  view.hover.value =
    flat === undefined ? placeOfCell(cell).at : placeOf(BigInt(cell.dataset.x!), parseShape(flat));
  anchor.value = anchorAt(cell, false);
}

export function hideTip() {
  view.hover.value = null;
  if (!anchor.value?.pinned) anchor.value = null;
}

/** Enter pins the tooltip of the cursor's cell, Enter or Esc lets it go. */
export function pinTip() {
  if (anchor.value?.pinned) {
    anchor.value = null;
    return;
  }
  const cell = document.querySelector('.vals td.cur');
  if (cell) anchor.value = anchorAt(cell, true);
}

function Lines({ found, pair }: { found: Element; pair: Pair }) {
  const side = (name: 'a' | 'b') => {
    const value = found[name];
    if (!value) return null;
    return (
      <>
        <dt>{sideName(name)}</dt>
        <dd>{value.text}</dd>
        <dd>
          {name === 'a' && pair.applied !== null ? 'f32' : pair[name]?.dtype} 0x
          {value.bits.replace(/^0x/, '')}
        </dd>
      </>
    );
  };
  const rel = toNumber(found.rel);
  const parts = [
    Number.isFinite(rel) ? `${sig(100 * rel, 3)} %` : '',
    found.ulp === null ? '' : `${num(found.ulp, 4)} ulp`,
  ].filter(Boolean);
  const m = pair.metrics;
  return (
    <dl>
      {side('a')}
      {side('b')}
      {found.a && found.b && (
        <>
          <dt>{pair.applied === null ? 'B − A' : 'B − T(A)'}</dt>
          <dd>{num(found.diff, 6)}</dd>
          <dd>{parts.join(', ')}</dd>
          <dt>tol</dt>
          <dd>{num(found.tolerance, 4)}</dd>
          <dd>{m ? tolerance(toNumber(m.atol), toNumber(m.rtol)) : ''}</dd>
        </>
      )}
    </dl>
  );
}

function judgement(found: Element) {
  const ratio = toNumber(found.ratio);
  if (!found.a || !found.b) return null;
  const isBad = ratio > 1 || (found.ratio === null && found.a.text !== found.b.text);
  const text = isBad
    ? `exceeds tolerance${Number.isFinite(ratio) ? ` ${times(ratio)}` : ''}`
    : `within tolerance${Number.isFinite(ratio) ? `, ${times(ratio)}` : ''}`;
  return (
    <div class={`v ${isBad ? 'bad' : ''}`}>
      <Glyph kind={isBad ? 'bad' : 'ok'} size="s" />
      {text}
    </div>
  );
}

export function Tip() {
  const at = anchor.value;
  const found = element.value;
  const pair = state.pair.value;
  if (!at || !found || !pair || !samePlace(found.at, probe.value)) return null;
  return (
    <div class="tip" role="tooltip" style={{ transform: `translate(${at.x}px, ${at.y}px)` }}>
      <div class="th">
        [{found.at.join(', ')}]<span>flat {digits(found.flat)}</span>
      </div>
      <Lines found={found} pair={pair} />
      {judgement(found)}
    </div>
  );
}
