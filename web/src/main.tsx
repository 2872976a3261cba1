// Starts the page: the token, the theme, what the URL asks for.
import { effect } from '@preact/signals';
import { render } from 'preact';
import { App } from './app';
import { listen } from './dnd/pointer';
import { followPlane } from './heat/plane';
import { listenToKeys } from './keys/keys';
import * as api from './net/api';
import { takeToken } from './net/http';
import { followOpen } from './store/deeds';
import { applyFinding, followConnection, followPair, wantPlace } from './store/pair';
import { watchTheme } from './store/prefs';
import { followProbe } from './store/probe';
import { closeSession, failed, openSession } from './store/session';
import * as state from './store/state';
import { keepUrl, readHash, readZoom } from './store/url';
import { watchFiles } from './store/watch';
import './styles/tokens.css';
import './styles/base.css';
import './styles/frame.css';
import './styles/list.css';
import './styles/detail.css';
import './styles/parts.css';
import './styles/maps.css';
import './styles/values.css';
import './styles/dialogs.css';
import './styles/open.css';
import './styles/plot.css';

async function go(hash: string) {
  const place = readHash(hash);
  wantPlace({ ...place, zoom: readZoom(hash) });
  if (place.session === null) {
    closeSession();
    return;
  }
  const isHere = place.session === state.session.value?.id && place.pair !== null;
  if (!isHere) await openSession(place.session, place.pair);
  // Another place in the pair that is open.
  else if (place.pair === state.openPair.value) applyFinding(place.applied);
  else state.openPair.value = place.pair;
}

async function start() {
  watchTheme();
  const hash = takeToken(location.hash);
  if (hash !== location.hash) history.replaceState(null, '', hash || location.pathname);
  render(<App />, document.getElementById('app')!);
  listen();
  listenToKeys();
  followPair();
  followConnection();
  followOpen();
  watchFiles();
  followProbe();
  followPlane();
  const arrived = keepUrl(go);
  try {
    const health = api.health().then((said) => {
      state.health.value = said;
      return said.open;
    });
    const [, open] = await Promise.all([arrived, health]);
    if (open && !new URLSearchParams(hash.slice(1)).has('s')) await openSession(open);
  } catch (error) {
    failed(error);
  }
  state.opening.value = false;
  effect(() => {
    const session = state.session.value;
    const names = session
      ? [session.a, session.b].map((side) => side.map((source) => source.name).join(', '))
      : [];
    document.title = session
      ? `${names.filter(Boolean).join(' vs ')} – Tensor debugger`
      : 'Tensor debugger';
  });
}

start();
