// What explains a pair: the sentence, how sure it is, what it leaves, a few values to check by eye,
// and a switch that shows the pair with the finding applied to A.
import { num } from '../fmt/number';
import type { Finding, Pair } from '../net/types';
import type { Evidence } from '../net/wire';
import { applyFinding } from '../store/pair';
import { residualText, sureText } from '../ui/cause';
import { SideMark } from '../ui/parts';

/** At most so many columns: what fits beside the sentence. */
const SHOWN = 6;

function EvidenceTable({ evidence }: { evidence: Evidence }) {
  const { at, a, b, model } = evidence;
  const rows = [
    { label: <SideMark side="a" small />, name: 'A', values: a },
    ...(model
      ? [{ label: <span class="ab a s wide">T(A)</span>, name: 'T(A)', values: model }]
      : []),
    { label: <SideMark side="b" small />, name: 'B', values: b },
  ];
  return (
    <table class="evid">
      <caption>
        {at.length > 0
          ? `Values from [${at.join(', ')}] on, where the difference is largest`
          : 'The value'}
      </caption>
      <tbody>
        {rows.map(({ label, name, values }) => (
          <tr key={name}>
            <th scope="row">{label}</th>
            {values.slice(0, SHOWN).map((value, i) => (
              <td key={i}>{num(value, 4)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function ApplyButton({ pair, number }: { pair: Pair; number: number }) {
  if (!pair.applicable.includes(number)) return null;
  const isOn = pair.applied === number;
  return (
    <button
      type="button"
      class={`btn sm ${isOn ? 'pri' : ''}`}
      aria-pressed={isOn}
      title="Show |Δ|, values and metrics with T(A), A with this finding applied, in place of A"
      onClick={() => applyFinding(isOn ? null : number)}
    >
      {isOn ? 'Applied: T(A) in place of A' : 'Apply this finding'}
    </button>
  );
}

function One({ pair, finding, number }: { pair: Pair; finding: Finding; number: number }) {
  return (
    <div class="finding">
      <div class="says">
        <p>
          <b>{finding.explanation}</b>
        </p>
        <p class="t2 row2">
          <span class="badge n">{sureText(finding)}</span>
          <span>{residualText(finding)}</span>
          <ApplyButton pair={pair} number={number} />
        </p>
      </div>
      {finding.evidence && <EvidenceTable evidence={finding.evidence} />}
    </div>
  );
}

export function Findings({ pair }: { pair: Pair }) {
  return (
    <>
      {pair.findings.map((finding, i) => (
        <One key={`${finding.code} ${i}`} pair={pair} finding={finding} number={i} />
      ))}
      {pair.message && <p class="finding t2">{pair.message}</p>}
    </>
  );
}
