// The error by index along each axis: which token, which head, which channel.
import { useMemo } from 'preact/hooks';
import type uPlot from 'uplot';
import { axis, ink, Plot } from '../charts/Plot';
import { count, sig, toNumber } from '../fmt/number';
import { useFetched } from '../grid/use';
import * as api from '../net/api';
import type { AxisProfile, Pair, Predictions } from '../net/types';
import * as view from '../store/view';

function optionsOf(
  profile: Pick<AxisProfile, 'maxAbs' | 'perBin'>,
  most: number,
  width: number,
  height: number,
): uPlot.Options {
  const bins = profile.maxAbs.length;
  return {
    width,
    height,
    padding: [4, 6, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
    scales: {
      x: { time: false, range: [-0.5, bins - 0.5] },
      y: { range: [0, most > 0 ? most * 1.05 : 1] },
    },
    axes: [
      axis({
        size: 16,
        grid: { show: false },
        splits: () => [0, Math.floor((bins - 1) / 2), bins - 1],
        values: (_, splits) => splits.map((bin) => String(bin * profile.perBin)),
      }),
      axis({
        size: 46,
        splits: () => [0, most],
        values: (_, splits) => splits.map((value) => sig(value, 2)),
      }),
    ],
    series: [
      {},
      {
        stroke: ink('pos'),
        width: 1,
        fill: `color-mix(in srgb, ${ink('pos')} 22%, transparent)`,
        points: { show: false },
      },
      { stroke: ink('text-3'), width: 1, points: { show: false } },
    ],
  };
}

function Profile({ profile }: { profile: AxisProfile }) {
  const data = useMemo<uPlot.AlignedData>(() => {
    const clean = (values: AxisProfile['maxAbs']) =>
      values.map((value) => (Number.isFinite(toNumber(value)) ? toNumber(value) : null));
    return [profile.maxAbs.map((_, i) => i), clean(profile.maxAbs), clean(profile.meanAbs)];
  }, [profile]);
  const most = Math.max(0, ...(data[1] as (number | null)[]).map((value) => value ?? 0));
  const worst = (data[1] as (number | null)[]).indexOf(most);
  const go = (bin: number) => {
    const at = [...view.cursor.value];
    at[profile.axis] = Math.min(profile.size - 1, bin * profile.perBin);
    view.goTo(at);
  };
  return (
    <div class="prof">
      <p class="row2">
        <b class="b">dim {profile.axis}</b>
        <span class="t3">of {profile.size}; worst at</span>
        <button type="button" class="lnk" onClick={() => go(worst)}>
          {worst * profile.perBin}
        </button>
      </p>
      <Plot
        label={`Difference along dimension ${profile.axis}; at most ${sig(most, 3)}`}
        data={data}
        watch={`${profile.axis}`}
        options={(width, height) => optionsOf(profile, most, width, height)}
        onMake={(plot) => plot.over.addEventListener('click', () => go(plot.cursor.idx ?? 0))}
      />
    </div>
  );
}

/** The divergence of what both sides predict, position by position. */
function Predicted({ found }: { found: Predictions }) {
  const data = useMemo<uPlot.AlignedData>(
    () => [
      found.kl.map((_, i) => i),
      found.kl.map((value) => (Number.isFinite(toNumber(value)) ? toNumber(value) : null)),
    ],
    [found],
  );
  const most = Math.max(0, ...(data[1] as (number | null)[]).map((value) => value ?? 0));
  const other = found.otherTop.reduce((sum, n) => sum + n, 0);
  const profile = { perBin: found.perBin, maxAbs: found.kl };
  return (
    <div class="prof">
      <p class="row2">
        <b class="b">KL by position</b>
        <span class="t3">
          at most {sig(most, 3)}; another top token at {count(other)} of {count(found.positions)}
        </span>
      </p>
      <Plot
        label={`KL divergence of B from A by position; at most ${sig(most, 3)}`}
        data={data}
        watch="predictions"
        options={(width, height) => {
          const options = optionsOf(profile, most, width, height);
          return { ...options, series: options.series.slice(0, data.length) };
        }}
      />
    </div>
  );
}

// As the readers of logits know them: at least 32 words, under one of these names.
const PREDICTIONS = /logits|lm_head|log_?probs|result_output|embed_out/i;
const isPredicted = (pair: Pair) =>
  (pair.shape?.at(-1) ?? 0) >= 32 && PREDICTIONS.test(`${pair.a?.name} ${pair.b?.name}`);

export function Profiles({ pair }: { pair: Pair }) {
  const words = isPredicted(pair);
  const { value: found, isOld } = useFetched(`${pair.id} ${pair.v}`, (asked) =>
    api.axes(asked.session, pair, words, asked.signal),
  );
  if (!found || isOld) return null;
  const long = found.axes.filter((profile) => profile.size > 1);
  if (long.length === 0) return <p class="nohits">No axis has more than one index.</p>;
  return (
    <>
      {found.predictions && <Predicted found={found.predictions} />}
      {long.map((profile) => (
        <Profile key={profile.axis} profile={profile} />
      ))}
    </>
  );
}
