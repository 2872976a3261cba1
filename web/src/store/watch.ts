// Files that change on disk: said, and read again when asked, or at once with `serve --watch`.
import { effect } from '@preact/signals';
import * as api from '../net/api';
import type { Session, Source } from '../net/types';
import { reloadFiles } from './deeds';
import * as state from './state';

/** Quick enough for whoever rebuilds and looks; a question takes well under a millisecond. */
const EVERY_MS = 2000;

const isIdle = (session: Session) =>
  !['matching', 'comparing', 'explaining'].includes(session.state);

const sidesOf = (changed: readonly Source[], session: Session) =>
  (['a', 'b'] as const)
    .filter((side) => session[side].some(({ id }) => changed.some((each) => each.id === id)))
    .map((side) => side.toUpperCase());

async function look() {
  const session = state.session.value;
  if (!session || !isIdle(session) || !state.connected.value || document.hidden) return;
  const known = [...session.a, ...session.b].filter((source) => source.kind === 'path');
  const now = await Promise.all(known.map((source) => api.source(source.id)));
  const current = state.session.value;
  if (current?.id !== session.id || current.run !== session.run) return;
  const byId = new Map(now.map((source) => [source.id, source]));
  const changed = known.filter((source) => byId.get(source.id)!.state !== source.state);
  if (changed.length === 0) return;
  const renewed = (source: Source) => byId.get(source.id) ?? source;
  const next = { ...current, a: current.a.map(renewed), b: current.b.map(renewed) };
  state.session.value = next;
  const stale = [...byId.values()].filter((source) => source.state !== 'ready');
  if (stale.length === 0) return;
  const sides = sidesOf(stale, next).join(' and ');
  const isGone = stale.some((source) => source.state === 'gone');
  if (state.health.value?.watch && !isGone) {
    reloadFiles();
    state.notify({ text: `${sides} changed on disk: comparing again.` });
    return;
  }
  state.notify(
    {
      text: isGone ? `${sides} is gone from the disk.` : `${sides} changed on disk: press R.`,
      ...(isGone ? {} : { action: { label: 'Read again', run: reloadFiles } }),
    },
    60_000,
  );
}

/** While the page is seen, and nothing is compared anyway. */
export function watchFiles() {
  let timer = 0;
  effect(() => {
    const isOpen = state.session.value !== null;
    clearTimeout(timer);
    if (!isOpen) return;
    const again = () => {
      timer = window.setTimeout(
        () =>
          look()
            .catch(() => {})
            .then(again),
        EVERY_MS,
      );
    };
    again();
  });
}
