// The first screen: two slots, three modes found out by themselves, the demo, what was before.
import * as api from '../net/api';
import type { Mode } from '../net/types';
import { enterSession, failed } from '../store/session';
import * as state from '../store/state';
import { Icon } from '../ui/parts';
import { Logo, ThemeButton } from '../ui/TopBar';
import { filesOfDrop } from './files';
import { Recent } from './Recent';
import { Slot } from './Slot';
import {
  addAnywhere,
  askedMode,
  canExplore,
  canStart,
  mode,
  slots,
  start,
  startError,
  starting,
  swap,
} from './slots';

const MODES: [Mode, string][] = [
  ['compare', 'Compare two'],
  ['explore', 'Explore one'],
  ['mixed', 'Mixed: archive and single files'],
];

const openDemo = () => api.demo().then((made) => enterSession(made.id), failed);

function ModeBar() {
  return (
    <fieldset class="seg plain modes" aria-label="Mode">
      {MODES.map(([key, text]) => (
        <button
          key={key}
          type="button"
          aria-pressed={mode.value === key}
          onClick={() => {
            askedMode.value = key;
          }}
        >
          {text}
        </button>
      ))}
    </fieldset>
  );
}

/** What happens next, in words. */
function nextText(): string {
  const [a, b] = [slots.a.value, slots.b.value];
  if (mode.value === 'explore') return 'every tensor of one file, compared with every other';
  if (a.length + b.length === 0) return 'starts by itself when both sides are there';
  if (mode.value === 'mixed') return 'add files to either side; what has no partner is listed';
  return a.length === 0
    ? 'waiting for A'
    : b.length === 0
      ? 'starts by itself when B is complete'
      : '';
}

function Formats() {
  const formats = state.health.value?.formats ?? [];
  if (formats.length === 0) return null;
  return (
    <span
      class="t3 fmts"
      title={formats.map((each) => `${each.extensions || each.name}: ${each.summary}`).join('\n')}
    >
      {[...new Set(formats.flatMap((each) => each.extensions.split(' ').filter(Boolean)))].join(
        ' ',
      )}{' '}
      and folders
    </span>
  );
}

export function OpenScreen() {
  const isExplore = mode.value === 'explore';
  return (
    <div
      class="openapp"
      onDragOver={(event) => event.preventDefault()}
      onDrop={async (event) => {
        event.preventDefault();
        const files = event.dataTransfer ? await filesOfDrop(event.dataTransfer) : [];
        if (files.length > 0) addAnywhere(files);
      }}
    >
      <header class="top">
        <Logo />
        <span class="sp" />
        <ThemeButton />
      </header>
      <main class="openmain">
        <section class="wrap" aria-label="Open">
          <div class="headline">
            <h1>Open tensors</h1>
            <button type="button" class="btn" onClick={openDemo}>
              <Icon name="flag" />
              Try the demo
            </button>
          </div>
          <ModeBar />
          <div class={`slots ${isExplore ? 'one' : ''}`}>
            <Slot side="a" isMixed={mode.value === 'mixed'} />
            {!isExplore && (
              <>
                <div class="mid">
                  <button type="button" class="btn g sm" aria-label="Swap A and B" onClick={swap}>
                    <Icon name="swap" />
                  </button>
                </div>
                <Slot side="b" isMixed={mode.value === 'mixed'} />
              </>
            )}
          </div>
          <div class="go">
            <button
              type="button"
              class="btn pri"
              disabled={!canStart.value}
              onClick={() => start()}
            >
              {starting.value ? 'Starting…' : isExplore ? 'Explore' : 'Compare'}
            </button>
            {canExplore.value && !isExplore && (
              <button type="button" class="btn" onClick={() => start('explore')}>
                Explore A alone
              </button>
            )}
            <span class="t2">{nextText()}</span>
            <span class="sp" />
            <Formats />
          </div>
          {startError.value && (
            <div class="note err" role="alert">
              <Icon name="hash" />
              <span>{startError.value}</span>
            </div>
          )}
        </section>
        <Recent />
      </main>
      <footer class="stat">
        <span>Listening on {location.host}, files stay on this machine</span>
        <span class="sp" />
        <span class="hide-s">tensordiff {state.health.value?.version ?? ''}</span>
      </footer>
    </div>
  );
}
