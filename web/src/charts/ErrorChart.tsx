// Error over layers: a mark for each pair in execution order, the tolerance, the first divergence.
import { type Signal, useComputed, useSignal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import { counted, sig, times } from '../fmt/number';
import { culprit } from '../store/culprit';
import { open } from '../store/deeds';
import type { PairStore } from '../store/pairs';
import * as state from '../store/state';
import { classOfCode, LABEL } from '../store/status';
import { Pick } from '../ui/parts';
import * as marks from './marks';
import { axis, Plot } from './Plot';

const HELP = 'Arrow keys walk, Enter opens.';
const sizeText = (pairs: number) => `Error over layers, ${counted(pairs, 'pair')}`;

const METRICS = [
  ['ratio', 'max |Δ| / tol'],
  ['maxAbs', 'max |Δ|'],
  ['relL2', 'relative L2'],
  ['distance', '1 − cosine'],
] as const;

/** What is NaN or infinite on one side alone is off by more than any number. */
function heightValue(store: PairStore, metric: string, row: number): number {
  if (store.num('ratio', row) === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY;
  return metric === 'distance' ? 1 - store.num('cosine', row) : store.num(metric, row);
}

function pointsOf(store: PairStore, metric: string): marks.Point[] {
  const order = store.column('order');
  const rows: number[] = [];
  for (let row = 0; row < store.n; row++) if (store.isPair(row)) rows.push(row);
  const isSorted = rows.every((row, i) => i === 0 || !order || order[rows[i - 1]] <= order[row]);
  if (order && !isSorted) rows.sort((x, y) => order[x] - order[y]);
  return rows.map((row) => ({
    row,
    layer: store.num('layer', row),
    value: heightValue(store, metric, row),
    kind: classOfCode[store.status(row)],
  }));
}

/** Whole powers of ten around the values, at most eight of them below the top. */
export function powersAround(values: readonly number[], withOne: boolean): [number, number] {
  const sizes = values.filter((value) => value > 0 && Number.isFinite(value));
  if (withOne) sizes.push(1);
  if (sizes.length === 0) return [0.01, 10];
  const top = Math.ceil(Math.log10(1.25 * sizes.reduce((most, size) => Math.max(most, size))));
  const low = Math.floor(Math.log10(sizes.reduce((least, size) => Math.min(least, size))));
  const least = Math.max(low, top - 8);
  return [10 ** (withOne ? Math.min(least, -1) : least), 10 ** Math.max(top, low + 2)];
}

/** Layers that get a label: not more than fit. */
function layerTicks(points: readonly marks.Point[], width: number): [number, string][] {
  const ticks: [number, string][] = [];
  const most = Math.max(2, Math.floor(width / 60));
  const layers = new Set(points.map((point) => point.layer)).size;
  const every = Math.max(1, Math.ceil(layers / most));
  points.forEach((point, i) => {
    const isFirst = i === 0 || points[i - 1].layer !== point.layer;
    if (!isFirst || point.layer < 0 || point.layer % every !== 0) return;
    ticks.push([i, ticks.length === 0 ? `layer ${point.layer}` : String(point.layer)]);
  });
  return ticks;
}

const yText = (value: number, isRatio: boolean) => {
  const isPlain = value >= 0.01 && value < 1e4;
  return (isPlain ? String(Number(value.toPrecision(2))) : sig(value, 1)) + (isRatio ? '×' : '');
};

interface Drawing {
  points: marks.Point[];
  metric: string;
  flag: number;
  /** Later steps that make an error of their own. */
  pennants: number[];
  flagText: (width: number) => string;
}

function optionsOf(d: Drawing, width: number, height: number): uPlot.Options {
  const isRatio = d.metric === 'ratio';
  const ticks = layerTicks(d.points, width);
  const [low, high] = powersAround(
    d.points.map((point) => point.value),
    isRatio,
  );
  return {
    width,
    height,
    padding: [26, 4, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
    scales: {
      x: { time: false, range: [-0.7, Math.max(d.points.length - 0.3, 0.7)] },
      y: { distr: 3, range: [low, high] },
    },
    axes: [
      axis({
        size: 16,
        grid: { show: false },
        splits: () => ticks.map(([i]) => i),
        values: () => ticks.map(([, text]) => text),
      }),
      axis({
        size: 44,
        splits: () => ySplits(low, high),
        values: (_, splits) => splits.map((value) => yText(value, isRatio)),
        filter: (_, splits) => splits,
      }),
    ],
    series: [{}, { show: true, paths: () => null, points: { show: false } }],
    hooks: {
      drawClear: [(plot) => marks.drawBands(plot, d.points)],
      draw: [
        (plot) => {
          if (isRatio) marks.drawTolerance(plot);
          marks.drawRidge(plot, d.points);
          marks.drawPoints(plot, d.points);
          for (const i of d.pennants) marks.drawPennant(plot, i, d.points[i].value);
          if (d.flag >= 0)
            marks.drawFlag(plot, d.flag, d.points[d.flag].value, d.flagText(plot.width));
        },
      ],
    },
  };
}

function ySplits(low: number, high: number): number[] {
  const [from, to] = [Math.round(Math.log10(low)), Math.round(Math.log10(high))];
  const every = Math.max(1, Math.ceil((to - from) / 3));
  const splits = [];
  // Counted from 1×, so that it always has its label.
  for (let power = from; power <= to; power++) if (power % every === 0) splits.push(10 ** power);
  return splits;
}

function Head({ metric }: { metric: Signal<string> }) {
  return (
    <div class="hd">
      <h2>{state.exploring.value ? 'Difference of all pairs' : 'Error over layers'}</h2>
      <Pick
        label="Metric of the chart"
        value={metric.value}
        options={METRICS}
        onPick={(value) => {
          metric.value = value;
        }}
      />
      {!state.exploring.value && (
        <span class="t3 hide-s keyline">
          <i class="key" />
          worst of each layer
        </span>
      )}
    </div>
  );
}

/** Where the later divergences are. */
function pennantsOf(store: PairStore, points: readonly marks.Point[]): number[] {
  const next = new Set(state.session.value?.nextDivergences.map((each) => each.pair));
  return next.size === 0 ? [] : points.flatMap((p, i) => (next.has(store.id(p.row)) ? [i] : []));
}

export function ErrorChart() {
  const metric = useSignal('ratio');
  const near = useSignal(-1);
  const plot = useRef<uPlot | null>(null);
  const points = useComputed(() => {
    state.rowsRev.value;
    return pointsOf(state.store.value, metric.value);
  });
  const store = state.store.value;
  const row = state.session.value ? culprit(state.session.value, store) : -1;
  const flag = row >= 0 ? points.value.findIndex((p) => p.row === row) : -1;
  // Weights have no first one.
  const what = state.session.value?.steps ? 'First divergence' : 'Largest change';
  const flagText = (width: number) => {
    const point = points.value[flag];
    const size = metric.value === 'ratio' ? times(point.value) : sig(point.value, 3);
    return width > 760 ? `${what}: ${store.name(point.row)}, ${size}` : `${what}, ${size}`;
  };
  const pennants = pennantsOf(store, points.value);
  const drawing = { points: points.value, metric: metric.value, flag, pennants, flagText };
  const flags = pennants.length + (flag >= 0 ? 1 : 0);
  const data = useMemo<uPlot.AlignedData>(
    () => [points.value.map((_, i) => i), points.value.map((p) => (p.value > 0 ? p.value : null))],
    [points.value],
  );
  const show = (i: number) => {
    const point = points.value[i];
    if (!point) return;
    near.value = i;
    const size = metric.value === 'ratio' ? times(point.value) : sig(point.value, 3);
    state.say(`${store.name(point.row)}, ${LABEL[point.kind]}, ${size}`);
    plot.current?.setCursor({ left: plot.current.valToPos(i, 'x'), top: 40 });
  };
  const onKey = (event: KeyboardEvent) => {
    const to = {
      ArrowLeft: near.value - 1,
      ArrowRight: near.value + 1,
      Home: 0,
      End: points.value.length - 1,
    }[event.key];
    if (to !== undefined) show(Math.max(0, Math.min(points.value.length - 1, to)));
    else if (event.key === 'Enter' && near.value >= 0) open(store.id(points.value[near.value].row));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="chart">
      <Head metric={metric} />
      <Plot
        label={`${sizeText(points.value.length)}, ${flags} flagged. ${HELP}`}
        data={data}
        watch={`${metric.value} ${flag} ${pennants.join()} ${state.store.value.rev}`}
        options={(width, height) => optionsOf(drawing, width, height)}
        onKey={onKey}
        onMake={(made) => {
          plot.current = made;
          made.over.addEventListener('click', () => {
            const i = made.cursor.idx;
            if (i !== null && i !== undefined && points.value[i])
              open(store.id(points.value[i].row));
          });
          made.over.addEventListener('mousemove', () => {
            const point = points.value[made.cursor.idx ?? -1];
            made.over.title = point
              ? `${store.name(point.row)}: ${times(store.num('ratio', point.row))}`
              : '';
          });
        }}
      />
    </div>
  );
}
