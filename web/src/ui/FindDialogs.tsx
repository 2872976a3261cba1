// Go to an index; find a value.
import { useSignal } from '@preact/signals';
import { parsePlace, shapeText } from '../fmt/shape';
import { findNext } from '../pair/jumps';
import { parseWanted } from '../pair/wanted';
import * as view from '../store/view';
import { closeDialog, Dialog } from './Dialog';

interface AskProps {
  title: string;
  label: string;
  placeholder: string;
  hint: string;
  /** The complaint, or '' when it was done. */
  onAsk: (text: string) => string;
}

function AskDialog({ title, label, placeholder, hint, onAsk }: AskProps) {
  const error = useSignal('');
  return (
    <Dialog title={title}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          const box = event.currentTarget.elements.namedItem('text') as HTMLInputElement;
          error.value = onAsk(box.value);
          if (!error.value) closeDialog();
        }}
      >
        <input
          class="ibox full"
          name="text"
          aria-label={label}
          aria-invalid={error.value !== ''}
          placeholder={placeholder}
          autofocus
          spellcheck={false}
          autocomplete="off"
          onInput={() => {
            error.value = '';
          }}
        />
        <span class={`full ${error.value ? 'num bad' : 't3'}`} role="status">
          {error.value || hint}
        </span>
        <span class="full acts2">
          <button type="submit" class="btn pri">
            Go
          </button>
        </span>
      </form>
    </Dialog>
  );
}

export function IndexDialog() {
  const { shape } = view.sliceA.value;
  return (
    <AskDialog
      title="Go to an index"
      label="Index"
      placeholder={shape.map((size) => Math.max(0, size - 1)).join(', ')}
      hint={`Of ${shapeText(shape)}: one number for each dimension, or one flat position`}
      onAsk={(text) => {
        const at = parsePlace(text, shape);
        if (!at) return `That is not inside ${shapeText(shape)}`;
        view.goTo(at);
        return '';
      }}
    />
  );
}

export function FindDialog() {
  return (
    <AskDialog
      title="Find a value"
      label="Value"
      placeholder="nan   inf   0.5   4:5   4.0..4.1   >3   b: <-1   d: >1e-3"
      hint="In A unless it starts with b: or d: (|Δ|), from the cursor on. N finds the next one."
      onAsk={(text) => {
        const wanted = parseWanted(text);
        if (!wanted) return 'Not understood: nan, inf, a number, 4:5, 4.0..4.1, >3 or <3';
        findNext(wanted, 1, true);
        return '';
      }}
    />
  );
}
