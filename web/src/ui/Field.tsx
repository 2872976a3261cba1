// A box for a number or a range: what does not fit is refused in place, and the complaint goes with
// the next key, or when the box is left.
import { useSignal } from '@preact/signals';

interface FieldProps {
  label: string;
  value: string;
  title?: string;
  short?: boolean;
  /** Takes the text, or says what is wrong with it. */
  onTake: (text: string) => string;
}

export function Field({ label, value, title, short, onTake }: FieldProps) {
  const complaint = useSignal('');
  /** What is being typed: news of the value must not write over it. */
  const typed = useSignal<string | null>(null);
  const drop = () => {
    complaint.value = '';
    typed.value = null;
  };
  return (
    <span class="field">
      <input
        class={`ibox ${short ? 'one' : ''}`}
        aria-label={label}
        aria-invalid={complaint.value !== ''}
        title={complaint.value || title}
        value={typed.value ?? value}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => {
          complaint.value = '';
          typed.value = event.currentTarget.value;
        }}
        onChange={(event) => {
          complaint.value = onTake(event.currentTarget.value);
          if (!complaint.value) typed.value = null;
        }}
        onBlur={drop}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') {
            event.stopPropagation();
            return;
          }
          drop();
          event.currentTarget.blur();
        }}
      />
      {complaint.value && (
        <span class="complaint" role="alert">
          {complaint.value}
        </span>
      )}
    </span>
  );
}
