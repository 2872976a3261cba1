// The top bar: both models, the tolerance, search, export, theme.
import { bytes, counted, tolerance } from '../fmt/number';
import type { Source } from '../net/types';
import { reloadFiles, swapSides } from '../store/deeds';
import { dark, flipTheme } from '../store/prefs';
import { leaveSession } from '../store/session';
import * as state from '../store/state';
import { Icon, SideMark } from './parts';

export const Logo = ({ onClick }: { onClick?: () => void }) => (
  <button type="button" class="logo" onClick={onClick} title="Open other tensors">
    <i aria-hidden="true">Δ</i>
    <span class="quiet-s">Tensor debugger</span>
  </button>
);

export const ThemeButton = () => (
  <button
    type="button"
    class="btn g"
    aria-label={dark.value ? 'Switch to light theme' : 'Switch to dark theme'}
    onClick={flipTheme}
  >
    <Icon name="moon" />
  </button>
);

const baseName = (name: string) => name.replace(/\/+$/, '').split('/').pop() || name;

function Model({ side, sources }: { side: 'a' | 'b'; sources: Source[] }) {
  const tensors = sources.reduce((sum, source) => sum + source.tensors, 0);
  const size = sources.reduce((sum, source) => sum + source.bytes, 0);
  const stale = sources.some((source) => source.state !== 'ready');
  const name = sources.length === 1 ? baseName(sources[0].name) : `${sources.length} files`;
  const problems = sources.flatMap((source) => source.problems);
  const all = sources.map((source) => source.path ?? source.name).join('\n');
  return (
    <button
      type="button"
      class={`model ${stale ? 'stale' : ''}`}
      title={stale ? `${all}\nchanged on disk: press R to read again` : all}
      onClick={() => (stale ? reloadFiles() : leaveSession())}
    >
      <SideMark side={side} />
      <span class="nm clip">{name}</span>
      <span class="mt hide-s">
        {counted(tensors, 'tensor')} · {bytes(size)}
        {problems.length > 0 && ` · ${counted(problems.length, 'problem')}`}
      </span>
      {stale && <span class="badge close">changed · R</span>}
    </button>
  );
}

/** What the tolerance was: set by hand, or by type; then that of the open pair. */
function toleranceText(): string {
  const policy = state.session.value!.policy;
  if (policy.atol !== null || policy.rtol !== null) return tolerance(policy.atol, policy.rtol);
  const metrics = state.pair.value?.metrics;
  const [atol, rtol] = [metrics?.atol, metrics?.rtol];
  return typeof atol === 'number' && typeof rtol === 'number'
    ? `by type: ${tolerance(atol, rtol)}`
    : 'by type';
}

export function TopBar() {
  const session = state.session.value!;
  return (
    <header class="top">
      <button
        type="button"
        class="btn only-xs"
        aria-label="List of pairs"
        aria-expanded={state.drawer.value}
        onClick={() => {
          state.drawer.value = !state.drawer.value;
        }}
      >
        <Icon name="menu" />
      </button>
      <Logo onClick={leaveSession} />
      <Model side="a" sources={session.a} />
      {session.b.length > 0 && (
        <>
          <button
            type="button"
            class="btn g"
            aria-label="Swap A and B"
            title="Swap A and B (X)"
            onClick={swapSides}
          >
            <Icon name="swap" />
          </button>
          <Model side="b" sources={session.b} />
          <button
            type="button"
            class="btn g hide-s"
            title="Tolerance"
            onClick={() => {
              state.dialog.value = 'tolerance';
            }}
          >
            <span class="t3">tol</span>
            <span class="m b4">{toleranceText()}</span>
            <Icon name="chev" size="xs" />
          </button>
        </>
      )}
      <button
        type="button"
        class="omni"
        aria-keyshortcuts="Control+K"
        onClick={() => {
          state.dialog.value = 'palette';
        }}
      >
        <Icon name="search" />
        <span class="clip quiet-s">Search pairs, values, commands</span>
        <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      <button
        type="button"
        class="btn"
        onClick={() => {
          state.dialog.value = 'export';
        }}
      >
        <Icon name="dl" />
        Export
      </button>
      <ThemeButton />
      <button
        type="button"
        class="btn g hide-s"
        aria-label="Keyboard shortcuts"
        aria-keyshortcuts="?"
        onClick={() => {
          state.dialog.value = 'keys';
        }}
      >
        <kbd aria-hidden="true">?</kbd>
      </button>
    </header>
  );
}
