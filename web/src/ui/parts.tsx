// Small parts: icons, side letters, pickers, badges.
import type { ComponentChildren } from 'preact';
import { pair } from '../store/state';
import type { Class } from '../store/status';
import { LABEL } from '../store/status';

export function Icon({ name, size, kind }: { name: string; size?: 's' | 'xs'; kind?: string }) {
  return (
    <svg class={`i ${size ?? ''} ${kind ?? ''}`} aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  );
}

export function Glyph({ kind, size }: { kind: Class; size?: 's' | 'xs' }) {
  return (
    <svg class={`i ${size ?? ''} ${kind}`} aria-hidden="true">
      <use href={`#g-${kind}`} />
    </svg>
  );
}

export const SideMark = ({ side, small }: { side: 'a' | 'b'; small?: boolean }) => (
  <span class={`ab ${side === 'a' ? 'a' : 'bb'} ${small ? 's' : ''}`}>
    {side === 'a' ? 'A' : 'B'}
  </span>
);

/** What a side of the open pair is called: a finding may be applied to A. */
export const sideName = (side: 'a' | 'b') =>
  side === 'a' && typeof pair.value?.applied === 'number' ? 'T(A)' : side.toUpperCase();

export const PairMark = ({ side }: { side: 'a' | 'b' }) =>
  sideName(side) === 'T(A)' ? (
    <span class="ab a s wide" title="A with the finding applied">
      T(A)
    </span>
  ) : (
    <SideMark side={side} small />
  );

interface PickProps {
  label: string;
  value: string;
  options: readonly (readonly [string, string])[];
  onPick: (value: string) => void;
}

export function Pick({ label, value, options, onPick }: PickProps) {
  return (
    <span class="pickw">
      <select
        class="pick"
        aria-label={label}
        value={value}
        onChange={(event) => onPick(event.currentTarget.value)}
      >
        {options.map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
      <Icon name="chev" size="xs" />
    </span>
  );
}

export function Badge({ kind, children }: { kind: Class; children: ComponentChildren }) {
  return (
    <span class={`badge ${kind === 'na' ? 'n' : kind}`}>
      <Glyph kind={kind} size="xs" />
      {children}
    </span>
  );
}

interface ProgressProps {
  label: string;
  part: number;
}

export const Progress = ({ label, part }: ProgressProps) => (
  <div
    class="pg"
    role="progressbar"
    aria-label={label}
    aria-valuemin={0}
    aria-valuemax={100}
    aria-valuenow={Math.round(100 * part)}
  >
    <i style={{ width: `${(100 * part).toFixed(1)}%` }} />
  </div>
);

/** Shares of the classes as one bar; the numbers are said beside it. */
export function Stack({ classes, kinds }: { classes: number[]; kinds: readonly Class[] }) {
  return (
    <>
      {kinds.map((kind, i) =>
        classes[i] > 0 ? (
          <i
            key={kind}
            class={`c-${kind}`}
            style={{ flex: String(classes[i]) }}
            title={LABEL[kind]}
          />
        ) : null,
      )}
    </>
  );
}
