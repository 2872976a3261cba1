// How tensors are paired, and the pairs made by hand: run again, save, load, stale ones.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { counted } from '../fmt/number';
import * as api from '../net/api';
import type { Match, Pairings } from '../net/types';
import { importPairings } from '../store/deeds';
import { failed, rerun } from '../store/session';
import * as state from '../store/state';
import { closeDialog, Dialog } from './Dialog';
import { Icon, SideMark } from './parts';

function download(name: string, text: string) {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function readMatch(form: HTMLFormElement): Partial<Match> {
  const fields = new FormData(form);
  const fuzzy = String(fields.get('fuzzy') ?? '');
  const regex = String(fields.get('regex') ?? '');
  const found: Partial<Match> = {
    strategies: fields.getAll('strategy').map(String),
    regex: regex === '' ? null : regex,
    align: fields.get('align') !== null,
  };
  if (fuzzy !== '') found.fuzzyThreshold = Number(fuzzy);
  return found;
}

function MatchForm() {
  const session = state.session.value!;
  const { match } = session;
  const matchers = state.health.value?.matchers ?? [];
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        rerun(api.patchSession(session.id, { match: readMatch(event.currentTarget) }));
        closeDialog();
      }}
    >
      <fieldset class="checks full plain" aria-label="Strategies">
        {matchers.map(({ name, summary }) => (
          <label key={name} title={summary}>
            <input
              type="checkbox"
              name="strategy"
              value={name}
              defaultChecked={match.strategies.length === 0 || match.strategies.includes(name)}
            />
            <span>
              {name} <small>{summary}</small>
            </span>
          </label>
        ))}
      </fieldset>
      <label for="regex">Regex</label>
      <input
        class="ibox"
        id="regex"
        name="regex"
        spellcheck={false}
        placeholder="L(?<layer>[0-9]+)-(?<stage>.+) or (?<key>…)"
        defaultValue={match.regex ?? ''}
      />
      <label for="fuzzy">Minimum name similarity</label>
      <input
        class="ibox"
        id="fuzzy"
        name="fuzzy"
        type="number"
        min="0"
        max="1"
        step="0.01"
        placeholder="as usual"
        defaultValue={match.fuzzyThreshold === null ? '' : String(match.fuzzyThreshold)}
      />
      <label class="full row2">
        <input type="checkbox" name="align" defaultChecked={match.align} /> Bring different layouts
        together
      </label>
      <span class="full acts2">
        <button type="submit" class="btn pri">
          Pair again
        </button>
      </span>
    </form>
  );
}

function Stale({ saved }: { saved: Pairings }) {
  if (saved.stale.length === 0) return null;
  return (
    <div class="note">
      <Icon name="hash" />
      <div class="stalelist">
        <b class="b">{saved.stale.length} no longer fit and are left out</b>
        {saved.stale.map((each) => (
          <div key={`${each.a}\n${each.b}`}>
            <span class="clip">
              {each.a} ↔ {each.b}
            </span>
            <span class="t3">{each.why}</span>
          </div>
        ))}
      </div>
    </div>
  );
}

function SavedPairings() {
  const session = state.session.value!;
  const saved = useSignal<Pairings | null>(null);
  useEffect(() => {
    api.pairings(session.id).then((found) => {
      saved.value = found;
    }, failed);
  }, []);
  if (!saved.value) return null;
  const { pairs, fingerprint, only } = saved.value;
  const forget = () => {
    rerun(api.putPairings(session.id, { pairs: [], only: false }));
    closeDialog();
  };
  return (
    <section aria-label="Pairs made by hand">
      <h3>
        {counted(pairs.length, 'pair')} made by hand
        {only ? ', and no others' : ''}
      </h3>
      <Stale saved={saved.value} />
      <div class="stalelist">
        {pairs.slice(0, 100).map((pair) => (
          <div key={`${pair.a}\n${pair.b}`}>
            <SideMark side="a" small />
            <span class="clip">{pair.a}</span>
            <SideMark side="b" small />
            <span class="clip">{pair.b}</span>
          </div>
        ))}
      </div>
      <div class="acts2">
        <label class="btn sm">
          Import…
          <input
            class="vh"
            type="file"
            accept="application/json,.json"
            onChange={async (event) => {
              const file = event.currentTarget.files?.[0];
              closeDialog();
              if (file) importPairings(await file.text());
            }}
          />
        </label>
        <button
          type="button"
          class="btn sm"
          disabled={pairs.length === 0}
          onClick={() =>
            download('pairings.json', JSON.stringify({ fingerprint, only, pairs }, null, 1))
          }
        >
          Export
        </button>
        <button
          type="button"
          class="btn sm"
          disabled={pairs.length === 0 && !only}
          onClick={forget}
        >
          Forget all
        </button>
      </div>
    </section>
  );
}

export function MatchingDialog() {
  return (
    <Dialog title="Matching and pairings" wide>
      <MatchForm />
      <SavedPairings />
    </Dialog>
  );
}
