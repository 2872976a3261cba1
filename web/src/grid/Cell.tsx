// One value. Its place is in data attributes, so that one listener serves the whole grid.
import { lookOf, type Scale } from './look';
import { lettersOf } from './state';

interface CellProps {
  side: 'a' | 'b';
  value: number;
  a: number | undefined;
  d: number | undefined;
  scale: Scale;
  isCursor: boolean;
  /** Indices in the plane, or a flat position. */
  y: number;
  x: number;
}

export function Cell({ side, value, a, d, scale, isCursor, y, x }: CellProps) {
  const look = lookOf(value, a, d, scale);
  const style: Record<string, string> = {};
  if (look.fill) style.background = look.fill;
  if (look.edge) style['--edge'] = look.edge;
  const isLong = look.text.length > lettersOf(scale.digits);
  return (
    <td
      class={`${look.kind} ${look.border} ${isCursor ? 'cur' : ''} ${isLong ? 'long' : ''}`}
      style={style}
      data-side={side}
      data-y={y}
      data-x={x}
    >
      {look.text}
      {look.border === 'far' && <span class="vh"> beyond tolerance</span>}
    </td>
  );
}
