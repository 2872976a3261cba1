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
  return (
    <span class="field">
      <input
        class={`ibox ${short ? 'one' : ''}`}
        aria-label={label}
        aria-invalid={complaint.value !== ''}
        title={complaint.value || title}
        value={value}
        spellcheck={false}
        autocomplete="off"
        onInput={() => {
          complaint.value = '';
        }}
        onChange={(event) => {
          complaint.value = onTake(event.currentTarget.value);
        }}
        onBlur={(event) => {
          complaint.value = '';
          event.currentTarget.value = value;
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') {
            event.stopPropagation();
            return;
          }
          complaint.value = '';
          event.currentTarget.value = value;
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
