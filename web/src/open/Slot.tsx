// One side of the open screen: drop files, or give a path; then what was found in it.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { bytes, count, duration } from '../fmt/number';
import * as state from '../store/state';
import { Icon, Progress, SideMark } from '../ui/parts';
import { filesOfDrop } from './files';
import { formatText } from './format';
import { PathBox } from './PathBox';
import { addFiles, type Item, pause, remove, resume, type SideName, slots } from './slots';

function Facts({ item }: { item: Item }) {
  const source = item.source!;
  const rows: [string, string][] = [
    ['Format', formatText(source.format, source.name, state.health.value?.formats ?? [])],
    ['Files', count(source.files)],
    ['Tensors', count(source.tensors)],
    ['Size', `${bytes(source.bytes)}${source.kind === 'path' ? ', read in place' : ''}`],
  ];
  return (
    <>
      <dl class="kv">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {source.problems.length > 0 && (
        <details class="note">
          <summary>problems inside: {count(source.problems.length)}</summary>
          <ul>
            {source.problems.slice(0, 50).map((problem) => (
              <li key={`${problem.where} ${problem.message}`}>
                <b class="b">{problem.where}</b>: {problem.message}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Uploading({ item, side }: { item: Item; side: SideName }) {
  const now = item.progress;
  const part = now && now.size > 0 ? now.sent / now.size : 0;
  return (
    <>
      <div class="dz on small">
        <b>
          {now
            ? `Uploading ${bytes(now.sent)} of ${bytes(now.size)}`
            : item.kind === 'path'
              ? 'Opening…'
              : 'Waiting'}
        </b>
        {now && now.bytesPerSec > 0 && (
          <span>
            {bytes(now.bytesPerSec)}/s{now.etaMs === null ? '' : `, ${duration(now.etaMs)} left`}
          </span>
        )}
      </div>
      <Progress label={`Upload of ${side.toUpperCase()}`} part={part} />
      {item.kind === 'upload' && (
        <div class="row2">
          {item.stop ? (
            <button type="button" class="btn sm" onClick={() => pause(item)}>
              Pause
            </button>
          ) : (
            <button type="button" class="btn sm" onClick={() => resume(side, item)}>
              Go on
            </button>
          )}
          <button type="button" class="btn sm" onClick={() => remove(side, item)}>
            Cancel
          </button>
          <span class="t3">On the same machine a path is instant.</span>
        </div>
      )}
    </>
  );
}

function Filled({ item, side }: { item: Item; side: SideName }) {
  return (
    <div class="item">
      <div class="inp">
        {item.error ? (
          <Icon name="x" kind="bad" />
        ) : (
          <Icon name={item.source ? 'file' : 'up-load'} />
        )}
        <span class="m clip" title={item.name}>
          {item.name}
        </span>
        <button
          type="button"
          class="btn g sm"
          aria-label={`Remove ${item.name}`}
          onClick={() => remove(side, item)}
        >
          {item.source || item.error ? 'Change' : <Icon name="x" />}
        </button>
      </div>
      {item.error ? (
        <div class="note err" role="alert">
          <Icon name="hash" />
          <span>{item.error}</span>
        </div>
      ) : item.source ? (
        <Facts item={item} />
      ) : (
        <Uploading item={item} side={side} />
      )}
    </div>
  );
}

function DropZone({ side, isOver }: { side: SideName; isOver: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  const limit = state.health.value?.limits.upload;
  return (
    <>
      <button
        type="button"
        class={`dz ${isOver ? 'on' : ''}`}
        onClick={() => input.current?.click()}
      >
        <Icon name="up-load" />
        <b>Drop {side === 'a' ? 'the reference' : 'what to compare with it'} here</b>
        <span>or choose files{limit ? `, up to ${bytes(limit)} each` : ''}</span>
      </button>
      <input
        ref={input}
        class="vh"
        type="file"
        multiple
        tabIndex={-1}
        aria-label={`Files for ${side.toUpperCase()}`}
        onChange={(event) => {
          const files = [...(event.currentTarget.files ?? [])];
          if (files.length > 0) addFiles(side, files);
          event.currentTarget.value = '';
        }}
      />
      <div class="or">
        <i />
        or a path on this machine
        <i />
      </div>
      <PathBox side={side} />
    </>
  );
}

export function Slot({ side, isMixed }: { side: SideName; isMixed: boolean }) {
  const over = useSignal(false);
  const items = slots[side].value;
  return (
    <section
      class={`slot ${over.value ? 'hot' : ''}`}
      aria-label={side === 'a' ? 'Side A, the reference' : 'Side B'}
      data-slot={side}
      onDragOver={(event) => {
        event.preventDefault();
        over.value = true;
      }}
      onDragLeave={() => {
        over.value = false;
      }}
      onDrop={async (event) => {
        event.preventDefault();
        event.stopPropagation();
        over.value = false;
        if (event.dataTransfer) {
          const files = await filesOfDrop(event.dataTransfer);
          if (files.length > 0) addFiles(side, files);
        }
      }}
    >
      <h2>
        <SideMark side={side} />
        {items.length === 0
          ? side === 'a'
            ? 'Reference'
            : 'Other'
          : items.length === 1
            ? shortName(items[0])
            : `${items.length} files`}
        <small>{items.length === 0 ? '' : items[0].kind === 'path' ? 'path' : 'upload'}</small>
      </h2>
      {items.map((item) => (
        <Filled key={item.key} item={item} side={side} />
      ))}
      {(items.length === 0 || isMixed) && <DropZone side={side} isOver={over.value} />}
    </section>
  );
}

const shortName = (item: Item) => item.name.replace(/\/+$/, '').split('/').pop() || item.name;
