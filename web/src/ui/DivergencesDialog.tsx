// Every step that makes an error of its own, in the order of computing, each a way to its pair.
import type { Divergence } from '../net/types';
import { openWorst } from '../store/deeds';
import * as state from '../store/state';
import { evidenceText, placeText, sureText } from './cause';
import { closeDialog, Dialog } from './Dialog';

function Item({ each }: { each: Divergence }) {
  const cause = state.session.value!.findings.find((finding) => finding.pair === each.pair);
  return (
    <li>
      <button
        type="button"
        class="lnk b"
        onClick={() => {
          closeDialog();
          openWorst(each.pair);
        }}
      >
        {placeText(each)}
      </button>
      {cause && (
        <p>
          <b>{cause.explanation}</b> <span class="t3">{sureText(cause)}</span>
        </p>
      )}
      <p class="t2">{evidenceText(each, cause)}</p>
    </li>
  );
}

export function DivergencesDialog() {
  const { firstDivergence, nextDivergences } = state.session.value!;
  const all = [...(firstDivergence ? [firstDivergence] : []), ...nextDivergences];
  return (
    <Dialog title="Divergences" wide>
      <ol class="divergences">
        {all.map((each) => (
          <Item key={each.pair} each={each} />
        ))}
      </ol>
    </Dialog>
  );
}
