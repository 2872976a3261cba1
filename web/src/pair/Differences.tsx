// How the differences are spread: a bar for each power of two, or values of one tensor.
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import type uPlot from 'uplot';
import { axis, ink, Plot } from '../charts/Plot';
import { count, sig, toNumber } from '../fmt/number';
import { useFetched } from '../grid/use';
import * as api from '../net/api';
import type { Histogram, Pair } from '../net/types';

const BINS = 61;

function bars(found: Histogram): { edges: number[]; counts: number[] } {
  const edges = found.edges.map((edge) => toNumber(edge));
  const { counts } = found;
  let first = 0;
  let last = counts.length;
  if (found.scale === 'log2') {
    // Only the powers that occur; a long empty tail says nothing.
    while (first < last && counts[first] === 0) first++;
    while (last > first && counts[last - 1] === 0) last--;
  }
  return { edges: edges.slice(first, last + 1), counts: counts.slice(first, last) };
}

/** 0, 1, 10, 100 …: the logarithm of a count, where one still shows. */
const height = (n: number) => Math.log10(n + 1);

function draw(plot: uPlot, counts: readonly number[], edges: readonly number[], isDiff: boolean) {
  const { ctx, bbox } = plot;
  const floor = bbox.top + bbox.height;
  const wide = bbox.width / counts.length;
  counts.forEach((n, i) => {
    if (n === 0) return;
    const top = plot.valToPos(height(n), 'y', true);
    ctx.fillStyle = isDiff ? ink('pos') : ink(edges[i] < 0 ? 'neg' : 'pos');
    ctx.globalAlpha = 0.85;
    ctx.fillRect(bbox.left + i * wide + 0.5, top, Math.max(1, wide - 1), floor - top);
  });
  ctx.globalAlpha = 1;
}

function optionsOf(
  found: ReturnType<typeof bars>,
  isDiff: boolean,
  tol: number,
  width: number,
  tall: number,
): uPlot.Options {
  const { counts, edges } = found;
  const most = Math.max(1, ...counts.map(height));
  const powers = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].filter(
    (p) => p <= most && (most <= 4 || p % 2 === 0),
  );
  const at = (value: number) => {
    const i = edges.findIndex((edge) => edge > value);
    return i < 0 ? counts.length : i;
  };
  return {
    width,
    height: tall,
    padding: [6, 28, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: [0, Math.max(1, counts.length)] },
      y: { range: [0, most * 1.05] },
    },
    axes: [
      axis({
        size: 16,
        grid: { show: false },
        splits: () => [0, counts.length / 2, counts.length],
        values: () =>
          [edges[0], edges[Math.floor(counts.length / 2)], edges[counts.length]].map((edge) =>
            sig(edge, 2),
          ),
        align: 1,
      }),
      axis({
        size: 34,
        splits: () => powers.map((p) => height(10 ** p)),
        values: () => powers.map((p) => `1e${p}`),
      }),
    ],
    series: [{}, { paths: () => null, points: { show: false } }],
    hooks: {
      draw: [
        (plot) => {
          draw(plot, counts, edges, isDiff);
          if (!isDiff || !(tol > 0) || !(tol < edges[counts.length])) return;
          const x = plot.valToPos(at(tol), 'x', true);
          plot.ctx.strokeStyle = ink('text-3');
          plot.ctx.setLineDash([3, 3]);
          plot.ctx.beginPath();
          plot.ctx.moveTo(x, plot.bbox.top);
          plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
          plot.ctx.stroke();
          plot.ctx.setLineDash([]);
        },
      ],
    },
  };
}

function Chart({ found, isDiff, tol }: { found: Histogram; isDiff: boolean; tol: number }) {
  const shown = useMemo(() => bars(found), [found]);
  const data = useMemo<uPlot.AlignedData>(
    () => [shown.counts.map((_, i) => i), shown.counts.map(height)],
    [shown],
  );
  if (shown.counts.length === 0)
    return (
      <div class="empty plot">
        <p>{isDiff ? 'No element differs' : 'No finite values'}</p>
        {found.zero > 0 && (
          <p class="t3">
            {count(found.zero)} are {isDiff ? 'equal' : 'zero'}
          </p>
        )}
      </div>
    );
  return (
    <Plot
      label={`Histogram from ${sig(shown.edges[0], 2)} to ${sig(shown.edges.at(-1)!, 2)}`}
      data={data}
      watch={`${found.of} ${shown.counts.length}`}
      options={(width, tall) => optionsOf(shown, isDiff, tol, width, tall)}
    />
  );
}

export function Differences({ pair, lead }: { pair: Pair; lead?: ComponentChildren }) {
  const isDiff = !!pair.metrics;
  const of = isDiff ? 'd' : pair.a ? 'a' : 'b';
  const found = useFetched(`${pair.id} ${pair.v}`, (asked) =>
    api.histogram(asked.session, pair, of, BINS, asked.signal),
  ).value;
  const tail = found
    ? [
        found.zero > 0 ? `${count(found.zero)} ${isDiff ? 'equal' : 'zero'}` : '',
        found.nonfinite > 0 ? `${count(found.nonfinite)} not finite` : '',
      ].filter(Boolean)
    : [];
  return (
    <div class="card hist">
      <div class="hd">
        {lead ?? <b>{isDiff ? 'Differences' : 'Spread'}</b>}
        <span class="t3">{isDiff ? '|B − A|' : of.toUpperCase()}, log count</span>
        <span class="sp" />
        <span class="t3 num clip" title={tail.join(', ')}>
          {tail.join(', ')}
        </span>
      </div>
      {found ? (
        <Chart found={found} isDiff={isDiff} tol={toNumber(pair.metrics?.atol ?? null)} />
      ) : (
        <div class="plot" />
      )}
    </div>
  );
}
