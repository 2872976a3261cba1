// The error by head and by token as strips: one glance says which of them are wrong.
import { useEffect, useRef } from 'preact/hooks';
import { sig, toNumber } from '../fmt/number';
import { useFetched } from '../grid/use';
import { table } from '../heat/colour';
import * as api from '../net/api';
import type { AxisProfile, Pair } from '../net/types';
import { dark } from '../store/prefs';
import * as view from '../store/view';

/** The axes that people ask about; the rest is under "By axis". */
const SHOWN = ['head', 'token'];

/** The place of a difference on the colour scale, of which all strips share the top. */
const shade = (value: number, most: number) =>
  most > 0 && value > 0 ? Math.max(8, Math.round((255 * value) / most)) : 0;

function Strip({ name, profile }: { name: string; profile: AxisProfile }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const values = profile.maxAbs.map((value, i) =>
    profile.nonfinite[i] > 0 ? Number.POSITIVE_INFINITY : toNumber(value),
  );
  const finite = values.filter(Number.isFinite);
  const most = Math.max(0, ...finite);
  const isDark = dark.value;
  useEffect(() => {
    const node = canvas.current!;
    node.width = Math.max(1, values.length);
    node.height = 1;
    const lut = table('diff', isDark);
    const picture = new ImageData(node.width, 1);
    values.forEach((value, i) => {
      const at = 4 * (value === Number.POSITIVE_INFINITY ? 255 : shade(value, most));
      picture.data.set([lut[at], lut[at + 1], lut[at + 2], 255], 4 * i);
    });
    node.getContext('2d')!.putImageData(picture, 0, 0);
  }, [profile, isDark]);
  const binAt = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const part = (event.clientX - box.left) / box.width;
    return Math.max(0, Math.min(values.length - 1, Math.floor(part * values.length)));
  };
  const go = (bin: number) => {
    const at = [...view.cursor.value];
    at[profile.axis] = Math.min(profile.size - 1, bin * profile.perBin);
    view.goTo(at);
  };
  const worst = values.indexOf(Math.max(...values));
  const here = view.cursor.value[profile.axis] ?? 0;
  return (
    <div class="strip">
      <span class="t2">{name}</span>
      <span class="bar">
        <canvas
          ref={canvas}
          role="img"
          aria-label={`Largest difference of each ${name}; worst is ${worst * profile.perBin}`}
          onClick={(event) => go(binAt(event))}
          onMouseMove={(event) => {
            const bin = binAt(event);
            const size = `max |Δ| ${sig(values[bin], 3)}`;
            event.currentTarget.title = `${name} ${bin * profile.perBin}: ${size}`;
          }}
        />
        <i style={{ left: `${((here + 0.5) / profile.size) * 100}%` }} />
      </span>
      <button type="button" class="lnk" onClick={() => go(worst)}>
        worst: {worst * profile.perBin}
      </button>
    </div>
  );
}

export function Strips({ pair }: { pair: Pair }) {
  const wanted = pair.metrics && pair.axes.some((name) => SHOWN.includes(name));
  const { value: found, isOld } = useFetched(wanted ? `${pair.id} ${pair.v}` : '', (asked) =>
    api.axes(asked.session, pair, false, asked.signal),
  );
  if (!wanted || !found || isOld) return null;
  const shown = found.axes.filter(
    ({ axis, size }) => size > 1 && SHOWN.includes(pair.axes[axis] ?? ''),
  );
  if (shown.length === 0) return null;
  return (
    <section class="strips" aria-label="Error by head and token">
      {shown.map((profile) => (
        <Strip key={profile.axis} name={pair.axes[profile.axis]} profile={profile} />
      ))}
    </section>
  );
}
