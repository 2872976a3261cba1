// The bottom line: how far the comparison is, and the keys of the moment.
import { bytes, count, counted, duration } from '../fmt/number';
import * as api from '../net/api';
import { failed } from '../store/session';
import * as state from '../store/state';
import { Progress } from './parts';

const RUNNING = ['matching', 'comparing', 'explaining'];

function Speed() {
  const { progress, state: now } = state.session.value!;
  const running = RUNNING.includes(now);
  if (!progress.bytesPerSec) return null;
  return (
    <span>
      {running ? '' : 'compared at '}
      {bytes(progress.bytesPerSec)}/s
      {running && progress.etaMs ? `, ${duration(progress.etaMs)} left` : ''}
    </span>
  );
}

export function StatusBar() {
  state.rowsRev.value;
  const session = state.session.value!;
  const { progress, summary } = session;
  const running = RUNNING.includes(session.state);
  const of = Math.max(progress.of, summary.pairs);
  const done = running ? progress.done : summary.pairs - summary.pending;
  // Of few but large pairs the bytes say more than the pairs.
  const ofBytes = progress.bytesTotal > 0 ? progress.bytes / progress.bytesTotal : 0;
  const part = Math.max(
    of === 0 && !running ? 1 : 0,
    done / Math.max(of, 1),
    running ? ofBytes : 0,
  );
  const byHand = state.store.value.n > 0 ? handCount() : 0;
  return (
    <footer class="stat">
      <Progress label="Pairs compared" part={Math.min(1, part)} />
      <b>
        {count(done)} of {counted(of, 'pair')}
      </b>
      <Speed />
      {running && session.job && (
        <button type="button" class="lnk" onClick={() => api.cancelJob(session.job!).catch(failed)}>
          cancel
        </button>
      )}
      {byHand > 0 && (
        <button
          type="button"
          class="lnk hide-s"
          onClick={() => {
            state.dialog.value = 'matching';
          }}
        >
          {counted(byHand, 'saved pairing')}
        </button>
      )}
      <span class="sp" />
      <span>
        <kbd>J</kbd> <kbd>K</kbd> pair
      </span>
      <span class="hide-s">
        <kbd>N</kbd> next difference
      </span>
      <span class="hide-s">
        <kbd>W</kbd> <kbd>A</kbd> <kbd>S</kbd> <kbd>D</kbd> zoom, pan
      </span>
      <span>
        <kbd>?</kbd> all keys
      </span>
    </footer>
  );
}

function handCount(): number {
  const store = state.store.value;
  let found = 0;
  for (let row = 0; row < store.n; row++)
    if (store.isPair(row) && store.isText('matchedBy', row, 'manual')) found++;
  return found;
}
