// The overlay with all keys.
import { singleKeys } from '../store/prefs';
import { Dialog } from '../ui/Dialog';
import { COMMANDS } from './keys';

const MORE: [string, string][] = [
  ['↑ ↓ ← →', 'Tree: move, close, open · grid: move the cell · chart: walk'],
  ['Space … Space', 'Pick up a row, move it with ↑ ↓, drop it; Esc cancels'],
  ['Alt+↑ Alt+↓', 'Move a row up or down'],
  ['B', 'Hold to blink between A and B'],
  ['Shift+wheel', 'Scroll sideways'],
];

const pretty = (key: string) => key.replace('Arrow', '').split('+');

export function KeysDialog() {
  const shown = COMMANDS.filter((command) => !command.inMap);
  return (
    <Dialog title="Keys" wide>
      <dl class="keys">
        {shown.map((command) => (
          <div key={command.key}>
            <dt>{command.text}</dt>
            <dd>
              {pretty(command.key).map((word) => (
                <kbd key={word}>{word}</kbd>
              ))}
            </dd>
          </div>
        ))}
        {MORE.map(([key, text]) => (
          <div key={key}>
            <dt>{text}</dt>
            <dd>
              <kbd>{key}</kbd>
            </dd>
          </div>
        ))}
      </dl>
      <label class="row2">
        <input
          type="checkbox"
          checked={singleKeys.value}
          onChange={(event) => {
            singleKeys.value = event.currentTarget.checked;
          }}
        />
        Single keys are on (Ctrl K always works)
      </label>
    </Dialog>
  );
}
