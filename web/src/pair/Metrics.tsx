// All metrics of a pair in one line; the rest one click away.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { cosine, count, counted, num, percent, toNumber } from '../fmt/number';
import type { Metrics as M, Pair } from '../net/types';

interface One {
  name: string;
  value: ComponentChildren;
  extra?: string;
  hot?: boolean;
  title?: string;
}

const elements = (n: number) => counted(n, 'element');

/** Elements that are not within tolerance, for whatever reason. */
export const beyond = (m: M): number => m.exceeding + m.nonfiniteMismatch;

function mainMetrics(pair: Pair, m: M): One[] {
  const bad = beyond(m) > 0;
  const lost = m.nonfiniteMismatch > 0;
  const nonfinite = (side: 'a' | 'b', kind: 'nan' | 'inf') =>
    count(toNumber(pair[side]?.stats?.[kind] ?? 0));
  return [
    {
      name: 'max |Δ|',
      value: lost ? 'NaN/Inf' : num(m.maxAbs),
      extra: m.maxAbsAt ? ` @ ${m.maxAbsAt.join(', ')}` : '',
      hot: bad,
    },
    { name: 'mean |Δ|', value: num(m.meanAbs, 3) },
    { name: 'relative L2', value: lost ? '–' : num(m.relL2, 3) },
    { name: 'cosine', value: cosine(toNumber(m.cosine)) },
    { name: 'SNR', value: num(m.snrDb, 3), extra: m.snrDb === null ? '' : ' dB' },
    {
      name: 'beyond tolerance',
      value: percent(beyond(m), m.compared + m.nonfiniteMismatch + m.nonfiniteAgreeing),
      extra: ` ${count(beyond(m))}`,
      hot: bad,
    },
    {
      name: 'NaN, Inf in A · B',
      value: `${nonfinite('a', 'nan')}, ${nonfinite('a', 'inf')}`,
      extra: ` · ${nonfinite('b', 'nan')}, ${nonfinite('b', 'inf')}`,
      hot: lost,
      title: `NaN/Inf mismatch at ${elements(m.nonfiniteMismatch)}`,
    },
    {
      name: 'ULP at most',
      value: num(m.ulpMax),
      extra: m.ulpMax === null ? '' : ` ${pair.a?.dtype ?? ''}`,
    },
  ];
}

function moreMetrics(pair: Pair, m: M): One[] {
  const stats = (side: 'a' | 'b') => {
    const s = pair[side]?.stats;
    return s ? `${num(s.mean, 3)} ± ${num(s.std, 3)}  [${num(s.min, 3)}, ${num(s.max, 3)}]` : '–';
  };
  return [
    { name: 'a: mean ± std [min, max]', value: stats('a') },
    { name: 'b: mean ± std [min, max]', value: stats('b') },
    { name: 'RMSE', value: num(m.rmse, 3) },
    { name: 'MSE', value: num(m.mse, 3) },
    { name: 'max relative', value: num(m.maxRel, 3) },
    { name: 'mean relative', value: num(m.meanRel, 3) },
    { name: 'Pearson', value: cosine(toNumber(m.pcc)) },
    { name: 'norm b / a', value: num(m.normRatio, 6) },
    { name: 'rtol needed', value: num(m.rtolNeeded, 3) },
    { name: 'equal elements', value: count(m.equal), extra: ` of ${count(m.compared)}` },
    { name: 'zeros a, b', value: `${num(pair.a?.stats?.zeros)}, ${num(pair.b?.stats?.zeros)}` },
    { name: 'norms a, b', value: `${num(pair.a?.stats?.norm, 5)}, ${num(pair.b?.stats?.norm, 5)}` },
  ];
}

/** A tensor by itself: its statistics. */
function alone(pair: Pair): One[] {
  const side = pair.a ?? pair.b;
  const s = side?.stats;
  return (['mean', 'std', 'min', 'max', 'norm', 'zeros', 'nan', 'inf'] as const).map((name) => ({
    name,
    value: num(s?.[name] ?? null),
    hot: (name === 'nan' || name === 'inf') && toNumber(s?.[name] ?? null) > 0,
  }));
}

const Cell = ({ one }: { one: One }) => (
  <div class={`met ${one.hot ? 'hot' : ''}`} title={one.title}>
    <dt>{one.name}</dt>
    <dd>
      {one.value}
      {one.extra && <small>{one.extra}</small>}
    </dd>
  </div>
);

export function Metrics({ pair }: { pair: Pair }) {
  const more = useSignal(false);
  const main = pair.metrics ? mainMetrics(pair, pair.metrics) : alone(pair);
  return (
    <div class="metbox">
      <dl class={`mets ${more.value ? 'all' : ''}`}>
        {main.map((one) => (
          <Cell key={one.name} one={one} />
        ))}
      </dl>
      {more.value && pair.metrics && (
        <dl class="mets rest">
          {moreMetrics(pair, pair.metrics).map((one) => (
            <Cell key={one.name} one={one} />
          ))}
        </dl>
      )}
      {pair.metrics && (
        <button
          type="button"
          class="btn g sm more"
          aria-expanded={more.value}
          aria-label={more.value ? 'Fewer metrics' : 'All metrics'}
          onClick={() => {
            more.value = !more.value;
          }}
        >
          {more.value ? '−' : '+'}
        </button>
      )}
    </div>
  );
}
