// What a person prefers, kept by the browser: theme, single keys, sizes of panels, formats.
import { effect, signal } from '@preact/signals';

function kept<T extends string | number | boolean>(key: string, fallback: T) {
  let start = fallback;
  try {
    const text = localStorage.getItem(`tensordiff.${key}`);
    if (text !== null) start = JSON.parse(text);
  } catch {
    // A browser that keeps nothing still works.
  }
  const value = signal<T>(start);
  effect(() => {
    const text = JSON.stringify(value.value);
    try {
      localStorage.setItem(`tensordiff.${key}`, text);
    } catch {
      // As above.
    }
  });
  return value;
}

export type Theme = 'auto' | 'light' | 'dark';
export const theme = kept<Theme>('theme', 'auto');
export const singleKeys = kept<boolean>('singleKeys', true);
export const listWidth = kept<number>('listWidth', 0);
export const logScale = kept<boolean>('logScale', true);
export const digits = kept<number>('digits', 4);
export const trayOpen = kept<boolean>('tray', true);

/** As the media queries of the style sheets have it. */
const narrowScreen = window.matchMedia('(max-width: 1240px)');
export const narrow = signal(narrowScreen.matches);
narrowScreen.addEventListener('change', () => {
  narrow.value = narrowScreen.matches;
});

export const dark = signal(false);
const system = window.matchMedia('(prefers-color-scheme: dark)');

function applyTheme() {
  const chosen = theme.value;
  dark.value = chosen === 'dark' || (chosen === 'auto' && system.matches);
  if (chosen === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

export function watchTheme() {
  effect(applyTheme);
  system.addEventListener('change', applyTheme);
}

export const flipTheme = () => {
  theme.value = dark.value ? 'light' : 'dark';
};
