// The three maps side by side: a, b and |Δ|, with their scales.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { num, sig } from '../fmt/number';
import { dark, logScale, narrow } from '../store/prefs';
import { element, probe } from '../store/probe';
import * as state from '../store/state';
import * as view from '../store/view';
import { PairMark, Pick, sideName } from '../ui/parts';
import { type Domain, table } from './colour';
import { HeatMap } from './Map';
import { diffDomain, noPlane, plane, valueDomain } from './plane';

function ColourBar({ domain }: { domain: Domain }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const isDark = dark.value;
  useEffect(() => {
    const node = canvas.current!;
    node.width = 256;
    node.height = 1;
    const lut = table(domain.scale, isDark);
    node.getContext('2d')!.putImageData(new ImageData(new Uint8ClampedArray(lut), 256, 1), 0, 0);
  }, [domain.scale, isDark]);
  const low = domain.scale === 'value' ? -domain.limit : domain.log ? domain.low : 0;
  return (
    <div class="cb">
      <span>{sig(low, 3)}</span>
      <canvas class="bar" ref={canvas} aria-hidden="true" />
      <span>{sig(domain.limit, 3)}</span>
    </div>
  );
}

function Ruler() {
  const { from, to } = view.zoom.value.x;
  const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(from + part * (to - from)));
  return (
    <div class="axr" aria-hidden="true">
      {marks.map((mark, i) => (
        <span key={i}>{mark}</span>
      ))}
    </div>
  );
}

/** The values come from the server, exact, not from pixels. */
function Readout({ what }: { what: 'a' | 'b' | 'd' }) {
  const found = element.value;
  const slice = view.sliceA.value;
  const at = probe.value;
  const place = [slice.y, slice.x].filter((axis) => axis >= 0).map((axis) => at[axis]);
  const isHere = found && found.at.join() === at.join();
  const text = !isHere
    ? '…'
    : what === 'd'
      ? num(absolute(found.diff), 5)
      : (found[what]?.text ?? '–');
  return (
    <span class="rd">
      [{place.join(', ')}]{' '}
      {text.length > 14
        ? num(isHere && what !== 'd' ? (found[what]?.value ?? null) : null, 7)
        : text}
    </span>
  );
}

const absolute = (value: number | string | null) =>
  typeof value === 'number'
    ? Math.abs(value)
    : value === '-inf'
      ? 'inf'
      : (value as 'nan' | 'inf' | null);

function MiniMap() {
  const { h, w } = view.planeSize(view.sliceA.value);
  const { y, x } = view.zoom.value;
  if (y.to - y.from >= h && x.to - x.from >= w) return null;
  const part = (value: number, size: number) => `${((100 * value) / size).toFixed(1)}%`;
  return (
    <span class="mm" aria-hidden="true">
      <i
        style={{
          left: part(x.from, w),
          top: part(y.from, h),
          width: part(x.to - x.from, w),
          height: part(y.to - y.from, h),
        }}
      />
    </span>
  );
}

const zoomText = () => {
  const { y, x } = view.zoom.value;
  const { h, w } = view.planeSize(view.sliceA.value);
  if (y.to - y.from >= h && x.to - x.from >= w) return `all of ${h} × ${w}`;
  return `${Math.round(y.to - y.from)} × ${Math.round(x.to - x.from)} of ${h} × ${w}`;
};

function ValueMap({
  side,
  shown,
  onShow,
}: {
  side: 'a' | 'b';
  shown: 'a' | 'b';
  onShow: (side: 'a' | 'b') => void;
}) {
  const blink = view.blinking.value;
  const other = side === 'a' ? 'b' : 'a';
  return (
    <div class={`card map-${side}`}>
      <div class="hd">
        <PairMark side={blink ? other : shown} />
        <span class="t3 hide-s">value</span>
        {side === 'a' && (
          <fieldset class="seg only-s plain" aria-label="Tensor shown">
            {(['a', 'b'] as const).map((each) => (
              <button
                key={each}
                type="button"
                aria-pressed={shown === each}
                onClick={() => onShow(each)}
              >
                {each.toUpperCase()}
              </button>
            ))}
          </fieldset>
        )}
        <span class="sp" />
        <span class="t3 m hide-s clip">{side === 'a' ? zoomText() : 'range linked to A'}</span>
      </div>
      <HeatMap
        name={shown}
        label={`Heat map of ${sideName(shown)}`}
        domain={valueDomain.value}
        blinkTo={shown === 'a' ? 'b' : 'a'}
      >
        <Readout what={blink ? other : shown} />
        {blink && <span class="rd flip">{sideName(other)}</span>}
      </HeatMap>
      <Ruler />
      <ColourBar domain={valueDomain.value} />
    </div>
  );
}

function DiffMap() {
  return (
    <div class="card map-d">
      <div class="hd">
        <b>|Δ|</b>
        <span class="t3 clip">
          <span class="hide-s">absolute difference, </span>max-pooled
        </span>
        <span class="sp" />
        <Pick
          label="Scale of differences"
          value={logScale.value ? 'log' : 'linear'}
          options={[
            ['log', 'log'],
            ['linear', 'linear'],
          ]}
          onPick={(value) => {
            logScale.value = value === 'log';
          }}
        />
      </div>
      <HeatMap name="d" label="Heat map of the absolute difference" domain={diffDomain.value}>
        <Readout what="d" />
        <MiniMap />
      </HeatMap>
      <Ruler />
      <ColourBar domain={diffDomain.value} />
    </div>
  );
}

export function Maps() {
  const small = useSignal<'a' | 'b'>('a');
  const pair = state.pair.value;
  const shape = view.shapeOf(pair);
  // One element is a number, not a picture.
  const isOne = shape?.every((size) => size === 1);
  if (!pair || !shape || isOne || shape.includes(0) || noPlane.value) return null;
  // Its room is kept from the start: what is below must not move when the maps come.
  if (!plane.value) return <section class="maps wait" aria-label="Heat maps" aria-busy="true" />;
  const isNarrow = narrow.value;
  const hasBoth = pair.a && pair.b;
  const onShow = (side: 'a' | 'b') => {
    small.value = side;
  };
  return (
    <section class={`maps ${hasBoth ? '' : 'one'}`} aria-label="Heat maps">
      {pair.a && <ValueMap side="a" shown={isNarrow ? small.value : 'a'} onShow={onShow} />}
      {pair.b && !(isNarrow && pair.a) && <ValueMap side="b" shown="b" onShow={onShow} />}
      {hasBoth && <DiffMap />}
    </section>
  );
}
