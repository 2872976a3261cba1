// A modal dialog of the platform: focus stays inside, Esc closes.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { dialog } from '../store/state';
import { Icon } from './parts';

interface DialogProps {
  title: string;
  children: ComponentChildren;
  wide?: boolean;
  bare?: boolean;
}

export const closeDialog = () => {
  dialog.value = null;
};

export function Dialog({ title, children, wide, bare }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  // At once, so that the very next key goes to the dialog.
  useLayoutEffect(() => {
    const node = ref.current!;
    const before = document.activeElement as HTMLElement | null;
    node.showModal();
    return () => before?.focus?.();
  }, []);
  return (
    <dialog
      ref={ref}
      class={`dlg ${wide ? 'wide' : ''} ${bare ? 'bare' : ''}`}
      aria-label={title}
      onClose={closeDialog}
      onClick={(event) => {
        if (event.target === ref.current) closeDialog();
      }}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key !== 'Escape') return;
        // The platform would close it a moment later, and lose a key that is pressed meanwhile.
        event.preventDefault();
        closeDialog();
      }}
    >
      <div class="dlgbody">
        {!bare && (
          <header>
            <h2>{title}</h2>
            <button type="button" class="btn g sm" aria-label="Close" onClick={closeDialog}>
              <Icon name="x" />
            </button>
          </header>
        )}
        {children}
      </div>
    </dialog>
  );
}
