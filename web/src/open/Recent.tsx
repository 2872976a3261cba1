// Sessions of before: they last, and open again as they were.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { count, when } from '../fmt/number';
import * as api from '../net/api';
import type { Recent as One } from '../net/types';
import { enterSession, failed } from '../store/session';
import type { Class } from '../store/status';
import { Glyph, Icon, SideMark } from '../ui/parts';

const SHOWN = 12;

const RESULT: Record<string, [Class, string]> = {
  same: ['ok', 'identical'],
  close: ['close', 'agree within tolerance'],
  different: ['bad', 'different'],
  trouble: ['nc', 'trouble'],
};

function resultOf(one: One): [Class, string] {
  if (one.state === 'failed') return ['nc', 'could not compare'];
  if (one.mode === 'explore') return ['na', 'explored'];
  return one.verdict ? RESULT[one.verdict] : ['na', one.state];
}

export function Recent() {
  const list = useSignal<One[] | null>(null);
  const load = () =>
    api.sessions().then(({ sessions }) => {
      list.value = sessions;
    }, failed);
  useEffect(() => {
    load();
  }, []);
  if (!list.value || list.value.length === 0) return null;
  return (
    <section class="wrap" aria-label="Recent sessions">
      <h3>Recent</h3>
      <table class="recent">
        <thead>
          <tr>
            <th scope="col">Session</th>
            <th scope="col">Result</th>
            <th scope="col">Pairs</th>
            <th scope="col">Opened</th>
            <th scope="col">
              <span class="vh">Forget</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {list.value.slice(0, SHOWN).map((one) => {
            const [kind, text] = resultOf(one);
            return (
              <tr key={one.id} onClick={() => enterSession(one.id)}>
                <td>
                  <button type="button" class="names">
                    <SideMark side="a" small /> {one.a}
                    {one.b && (
                      <>
                        <span class="t3"> vs </span>
                        <SideMark side="b" small /> {one.b}
                      </>
                    )}
                  </button>
                </td>
                <td>
                  <span class="row2">
                    <Glyph kind={kind} size="s" /> {text}
                  </span>
                </td>
                <td class="t2">{count(one.pairs)}</td>
                <td class="t3">{when(one.updated)}</td>
                <td>
                  <button
                    type="button"
                    class="btn g sm"
                    aria-label={`Forget the session of ${one.a}`}
                    onClick={(event) => {
                      event.stopPropagation();
                      api.deleteSession(one.id).then(load, failed);
                    }}
                  >
                    <Icon name="x" size="s" />
                  </button>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
