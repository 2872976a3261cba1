// The page as a whole: the open screen, or a session.
import { useEffect } from 'preact/hooks';
import { KeysDialog } from './keys/KeysDialog';
import { OpenScreen } from './open/OpenScreen';
import { PairView } from './pair/PairView';
import { Palette } from './palette/Palette';
import { listWidth } from './store/prefs';
import { reconnect } from './store/session';
import * as state from './store/state';
import { ListPanel } from './tree/ListPanel';
import { ConversionDialog } from './ui/ConversionDialog';
import { DivergencesDialog } from './ui/DivergencesDialog';
import { FindDialog, IndexDialog } from './ui/FindDialogs';
import { MatchingDialog } from './ui/MatchingDialog';
import { Menu } from './ui/Menu';
import { Overview } from './ui/Overview';
import { Icon } from './ui/parts';
import { ExportDialog, ToleranceDialog } from './ui/SettingsDialogs';
import { StatusBar } from './ui/StatusBar';
import { TopBar } from './ui/TopBar';

const RECONNECT_MS = 3000;

function Dialogs() {
  switch (state.dialog.value) {
    case 'palette':
      return <Palette />;
    case 'keys':
      return <KeysDialog />;
    case 'conversion':
      return <ConversionDialog />;
    case 'divergences':
      return <DivergencesDialog />;
    case 'export':
      return <ExportDialog />;
    case 'tolerance':
      return <ToleranceDialog />;
    case 'matching':
      return <MatchingDialog />;
    case 'find':
      return <FindDialog />;
    case 'index':
      return <IndexDialog />;
    default:
      return null;
  }
}

/** Passing remarks, and the one that stays: the server is gone. */
function Banner() {
  const lost = !state.connected.value;
  useEffect(() => {
    if (!lost) return;
    let timer = 0;
    const soon = () => {
      timer = window.setTimeout(() => reconnect().then(soon), RECONNECT_MS);
    };
    soon();
    return () => clearTimeout(timer);
  }, [lost]);
  const now = state.notice.value;
  if (!lost && !now) return null;
  return (
    <div class="banner" role="status">
      <Icon name={lost || now?.bad ? 'hash' : 'chevr'} kind={lost || now?.bad ? 'bad' : 'ok'} />
      <span>
        {lost ? 'The server does not answer. You see its last answer. Trying again…' : now!.text}
      </span>
      {!lost && now?.action && (
        <button type="button" class="btn sm" onClick={now.action.run}>
          {now.action.label}
        </button>
      )}
      {!lost && (
        <button
          type="button"
          class="btn g sm"
          aria-label="Dismiss"
          onClick={() => {
            state.notice.value = null;
          }}
        >
          <Icon name="x" />
        </button>
      )}
    </div>
  );
}

function SessionScreen() {
  const style = listWidth.value > 0 ? { '--list': `${listWidth.value}px` } : {};
  return (
    <div class={`app ${state.drawer.value ? 'drawer' : ''}`} style={style}>
      <TopBar />
      <Overview />
      <ListPanel />
      <PairView />
      <StatusBar />
    </div>
  );
}

export function App() {
  return (
    <>
      {state.session.value ? <SessionScreen /> : !state.opening.value && <OpenScreen />}
      <Banner />
      <Dialogs />
      <Menu />
      <div class="vh" aria-live="polite">
        {state.announced.value}
      </div>
    </>
  );
}
