// How one checkpoint was made of the other, kind by kind; what does not follow comes first.
import { count } from '../fmt/number';
import { open } from '../store/deeds';
import * as state from '../store/state';
import { closeDialog, Dialog } from './Dialog';

/** The tensors of a kind that do not follow its rule, each a way to its pair. */
function Exceptions({ pairs }: { pairs: number[] }) {
  const store = state.store.value;
  return (
    <ul class="exceptions">
      {pairs.map((pair) => {
        const row = store.row(pair);
        return (
          <li key={pair}>
            <button
              type="button"
              class="lnk"
              onClick={() => {
                closeDialog();
                open(pair);
              }}
            >
              {row < 0 ? `pair ${pair}` : store.name(row)}
            </button>
          </li>
        );
      })}
    </ul>
  );
}

export function ConversionDialog() {
  const rules = state.session.value!.conversion;
  return (
    <Dialog title="Conversion" wide>
      <table class="conversion">
        <thead>
          <tr>
            <th>Rule</th>
            <th class="num">Tensors</th>
            <th>A</th>
            <th>B</th>
          </tr>
        </thead>
        <tbody>
          {rules.map((rule) => (
            <tr key={`${rule.a} ${rule.b} ${rule.rule}`}>
              <td>
                {rule.rule}
                {rule.exceptions.length > 0 && (
                  <>
                    <span class="num bad">, but not for {count(rule.exceptions.length)}:</span>
                    <Exceptions pairs={rule.exceptions} />
                  </>
                )}
              </td>
              <td class="num">{count(rule.tensors)}</td>
              <td class="mono">{rule.a}</td>
              <td class="mono">{rule.b}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  );
}
