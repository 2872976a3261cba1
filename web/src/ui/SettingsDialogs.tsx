// Tolerance, and export.
import { useSignal } from '@preact/signals';
import * as api from '../net/api';
import { withToken } from '../net/http';
import { failed, rerun } from '../store/session';
import * as state from '../store/state';
import { CLASSES, classOf, STATUS } from '../store/status';
import { closeDialog, Dialog } from './Dialog';

const numberOrNull = (text: string) => (text.trim() === '' ? null : Number(text));

export function ToleranceDialog() {
  const session = state.session.value!;
  const { policy } = session;
  const error = useSignal('');
  const submit = (form: HTMLFormElement) => {
    const text = (name: string) => (form.elements.namedItem(name) as HTMLInputElement).value;
    const atol = numberOrNull(text('atol'));
    const rtol = numberOrNull(text('rtol'));
    const isWrong = (value: number | null) =>
      value !== null && !(value >= 0 && Number.isFinite(value));
    if (isWrong(atol) || isWrong(rtol)) {
      error.value = 'A tolerance is a number, 0 or more';
      return;
    }
    const equalNan = (form.elements.namedItem('equalNan') as HTMLInputElement).checked;
    rerun(api.patchSession(session.id, { policy: { atol, rtol, equalNan } }));
    closeDialog();
  };
  return (
    <Dialog title="Tolerance">
      <p class="t2">
        An element is beyond tolerance where |B − A| &gt; atol + rtol · |A|. Left empty, both follow
        from the two types of a pair.
      </p>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          submit(event.currentTarget);
        }}
      >
        <label for="atol">atol</label>
        <input
          class="ibox"
          id="atol"
          name="atol"
          autofocus
          placeholder="by type"
          defaultValue={policy.atol === null ? '' : String(policy.atol)}
        />
        <label for="rtol">rtol</label>
        <input
          class="ibox"
          id="rtol"
          name="rtol"
          placeholder="by type"
          defaultValue={policy.rtol === null ? '' : String(policy.rtol)}
        />
        <label class="full row2">
          <input type="checkbox" name="equalNan" defaultChecked={policy.equalNan} /> NaN equals NaN
        </label>
        {error.value && (
          <span class="full num bad" role="alert">
            {error.value}
          </span>
        )}
        <span class="full acts2">
          <button type="submit" class="btn pri">
            Compare again
          </button>
        </span>
      </form>
    </Dialog>
  );
}

const WORDS: Record<string, string> = {
  json: 'the whole result, for scripts',
  html: 'one file to read and send',
  csv: 'a row for each pair',
  junit: 'for build servers',
  markdown: 'for issues and reviews',
  yaml: 'the list of changes',
  text: 'as the command line prints it',
};

/** The server prepares the file; a link with the token fetches it. */
async function save(format: string, onlyShown: boolean) {
  const session = state.session.value!;
  const shown = STATUS.filter((status) => state.classes.value.has(classOf(status)));
  try {
    const made = await api.exportAs(session.id, format, onlyShown ? shown : undefined);
    const link = document.createElement('a');
    link.href = withToken(`/exports/${made.id}`);
    link.download = made.name;
    link.click();
    state.notify({ text: `Saved ${made.name}.` });
  } catch (error) {
    failed(error);
  }
}

export function ExportDialog() {
  const onlyShown = useSignal(false);
  const formats = state.health.value?.exports ?? ['json', 'html', 'csv'];
  const hidesSome = state.classes.value.size < CLASSES.length;
  return (
    <Dialog title="Export results">
      <div class="pal flush">
        {formats.map((format) => (
          <button
            key={format}
            type="button"
            class="btn exp"
            onClick={() => {
              closeDialog();
              save(format, onlyShown.value);
            }}
          >
            <b class="b">{format.toUpperCase()}</b>
            <span class="t3">{WORDS[format] ?? ''}</span>
          </button>
        ))}
      </div>
      {hidesSome && (
        <label class="row2">
          <input
            type="checkbox"
            checked={onlyShown.value}
            onChange={(event) => {
              onlyShown.value = event.currentTarget.checked;
            }}
          />
          Only the statuses that the chips show
        </label>
      )}
    </Dialog>
  );
}
