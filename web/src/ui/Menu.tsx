// The menu of the right button, or of Shift F10: what can be done with what is there.
import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';

export interface Item {
  text: string;
  key?: string;
  run: () => void;
}

interface Shown {
  x: number;
  y: number;
  label: string;
  items: Item[];
}

export const menu = signal<Shown | null>(null);

/** Opens a menu where the event happened; one from the keyboard comes without a place. */
export function openMenu(event: MouseEvent, label: string, items: Item[]) {
  event.preventDefault();
  const box = (event.target as Element).getBoundingClientRect();
  const byKey = event.clientX === 0 && event.clientY === 0;
  const [x, y] = byKey ? [box.left + 16, box.top + 16] : [event.clientX, event.clientY];
  menu.value = { x, y, label, items };
}

const close = () => {
  menu.value = null;
};

function onKey(event: KeyboardEvent, list: HTMLElement) {
  event.stopPropagation();
  const items = [...list.querySelectorAll<HTMLElement>('[role=menuitem]')];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by !== undefined) items[(at + by + items.length) % items.length]?.focus();
  else if (event.key === 'Home') items[0]?.focus();
  else if (event.key === 'End') items.at(-1)?.focus();
  else if (event.key === 'Escape' || event.key === 'Tab') close();
  else return;
  event.preventDefault();
}

function Open({ shown }: { shown: Shown }) {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const node = list.current!;
    const before = document.activeElement as HTMLElement | null;
    // Inside the window, wherever it was asked for.
    const left = Math.max(4, Math.min(shown.x, window.innerWidth - node.offsetWidth - 4));
    const top = Math.max(4, Math.min(shown.y, window.innerHeight - node.offsetHeight - 4));
    node.style.transform = `translate(${left}px, ${top}px)`;
    node.querySelector<HTMLElement>('[role=menuitem]')?.focus();
    return () => before?.focus?.();
  }, [shown]);
  return (
    <>
      <div
        class="menu-away"
        onPointerDown={close}
        onContextMenu={(event) => {
          event.preventDefault();
          close();
        }}
      />
      <div
        class="menu"
        ref={list}
        role="menu"
        aria-label={shown.label}
        onKeyDown={(event) => onKey(event, event.currentTarget)}
      >
        {shown.items.map((item) => (
          <button
            key={item.text}
            type="button"
            role="menuitem"
            tabIndex={-1}
            onClick={() => {
              close();
              item.run();
            }}
          >
            <span>{item.text}</span>
            {item.key && <kbd aria-hidden="true">{item.key}</kbd>}
          </button>
        ))}
      </div>
    </>
  );
}

export const Menu = () => (menu.value ? <Open shown={menu.value} /> : null);
