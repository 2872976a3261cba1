// The keyboard map: one table that the listener, the overlay and the palette all read.

import { anchor, pinTip } from '../grid/Tip';
import { fit, oneToOne, pan, zoomAt } from '../heat/move';
import { copyNumpy, copyValue, findAgain, jumpToMax } from '../pair/jumps';
import {
  collapseAll,
  expandAll,
  pairChosen,
  reloadFiles,
  setClosed,
  swapSides,
  unpair,
  walk,
} from '../store/deeds';
import { flipTheme, logScale, singleKeys } from '../store/prefs';
import * as state from '../store/state';
import * as view from '../store/view';

export interface Command {
  /** As shown: "Shift+J". Matched against what was pressed. */
  key: string;
  also?: string;
  text: string;
  run: () => void;
  /** Only while a heat map has the focus. */
  inMap?: boolean;
}

const openDialog = (dialog: state.Dialog) => () => {
  state.dialog.value = dialog;
};

function closeFocused(isClosed: boolean) {
  const code = state.focusCode.value;
  if (code === null) return;
  const { codes, groups } = state.flat.value;
  let at = codes.indexOf(code);
  while (at >= 0 && codes[at] >= 0) at--;
  if (at < 0) return;
  setClosed(groups[-codes[at] - 1].label, isClosed);
  // Its rows are gone, and the focus must not be with them.
  if (isClosed) state.focusCode.value = codes[at];
}

const showView = (shown: view.ValueView) => () => {
  view.valueView.value = shown;
};

function mapSize() {
  const node = document.querySelector('.hm');
  return { width: node?.clientWidth ?? 300, height: node?.clientHeight ?? 168 };
}

export const COMMANDS: Command[] = [
  { key: 'J', text: 'Next pair', run: () => walk(1, false) },
  { key: 'K', text: 'Previous pair', run: () => walk(-1, false) },
  { key: 'Shift+J', text: 'Next pair that differs', run: () => walk(1, true) },
  { key: 'Shift+K', text: 'Previous pair that differs', run: () => walk(-1, true) },
  { key: 'E', text: 'Expand group', run: () => closeFocused(false) },
  { key: 'C', text: 'Collapse group', run: () => closeFocused(true) },
  { key: 'Shift+E', text: 'Expand all groups', run: expandAll },
  { key: 'Shift+C', text: 'Collapse all groups', run: collapseAll },
  { key: '/', text: 'Filter pairs', run: () => document.getElementById('filter')?.focus() },
  { key: 'Ctrl+K', also: '>', text: 'Search pairs and commands', run: openDialog('palette') },
  { key: 'P', text: 'Pair the two chosen tensors', run: pairChosen },
  {
    key: 'U',
    text: 'Unpair',
    run: () => {
      if (state.openPair.value !== null) unpair(state.openPair.value);
    },
  },
  { key: 'X', text: 'Swap A and B', run: swapSides },
  { key: 'R', text: 'Read changed files again', run: reloadFiles },
  { key: 'M', text: 'Go to the largest difference', run: jumpToMax },
  { key: 'N', text: 'Next element beyond tolerance', run: () => findAgain(1) },
  { key: 'Shift+N', text: 'Previous element beyond tolerance', run: () => findAgain(-1) },
  { key: 'G', text: 'Go to an index', run: openDialog('index') },
  { key: 'F', text: 'Find a value, a range, NaN or Inf', run: openDialog('find') },
  { key: ']', text: 'Step the active dimension', run: () => view.step(view.activeAxis.value, 1) },
  { key: '[', text: 'Step it back', run: () => view.step(view.activeAxis.value, -1) },
  { key: 'Shift+]', also: '}', text: 'Ten steps', run: () => view.step(view.activeAxis.value, 10) },
  {
    key: 'Shift+[',
    also: '{',
    text: 'Ten steps back',
    run: () => view.step(view.activeAxis.value, -10),
  },
  { key: '1', text: 'Values along one dimension', run: showView('1d') },
  { key: '2', text: 'Values of a plane', run: showView('2d') },
  { key: '3', text: 'Values in flat order', run: showView('flat') },
  { key: 'W', text: 'Zoom in', run: () => zoomAt(0.7) },
  { key: 'S', text: 'Zoom out', run: () => zoomAt(1 / 0.7) },
  { key: 'A', text: 'Pan left', run: () => pan(-0.2, 0) },
  { key: 'D', text: 'Pan right', run: () => pan(0.2, 0) },
  { key: 'ArrowUp', text: 'Pan up', run: () => pan(0, -0.2), inMap: true },
  { key: 'ArrowDown', text: 'Pan down', run: () => pan(0, 0.2), inMap: true },
  { key: 'ArrowLeft', text: 'Pan left', run: () => pan(-0.2, 0), inMap: true },
  { key: 'ArrowRight', text: 'Pan right', run: () => pan(0.2, 0), inMap: true },
  { key: '0', text: 'Fit the whole plane', run: fit },
  {
    key: 'Shift+0',
    also: ')',
    text: 'One element for each pixel',
    run: () => oneToOne(mapSize().width, mapSize().height),
  },
  {
    key: 'L',
    text: 'Linear or logarithmic colors',
    run: () => {
      logScale.value = !logScale.value;
    },
  },
  { key: 'Y', text: 'Copy the values at the cursor', run: copyValue },
  { key: 'Shift+Y', text: 'Copy as Python', run: copyNumpy },
  { key: 'T', text: 'Light or dark', run: flipTheme },
  { key: 'Enter', text: 'Pin the tooltip of the cursor', run: pinTip },
  { key: '?', text: 'All keys', run: openDialog('keys') },
];

/** What was pressed, written as in the table. */
export function keyText(event: KeyboardEvent): string {
  const name = event.key.length === 1 ? event.key.toUpperCase() : event.key;
  const isLetter = /^[A-Z]$/.test(name);
  const shift = event.shiftKey && (isLetter || event.key.length > 1) ? 'Shift+' : '';
  const ctrl = event.ctrlKey || event.metaKey ? 'Ctrl+' : '';
  return `${ctrl}${event.altKey ? 'Alt+' : ''}${shift}${name}`;
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
  (target as HTMLInputElement).type !== 'range';

/** Enter and Space belong to the button that has the focus. */
const isPressing = (event: KeyboardEvent) =>
  (event.key === 'Enter' || event.key === ' ') &&
  event.target instanceof HTMLElement &&
  event.target.closest('button, a, summary') !== null;

function onKeyDown(event: KeyboardEvent) {
  const text = keyText(event);
  if (!state.session.value || state.dialog.value) return;
  if (text === 'Escape' && anchor.value) {
    anchor.value = null;
    return;
  }
  if (text !== 'Ctrl+K' && (isTyping(event.target) || isPressing(event) || !singleKeys.value))
    return;
  if (text === 'B') {
    view.blinking.value = true;
    return;
  }
  const inMap = event.target instanceof HTMLElement && event.target.closest('.hm') !== null;
  const command = COMMANDS.find(
    (each) => (each.key === text || each.also === event.key) && (!each.inMap || inMap),
  );
  if (!command) return;
  event.preventDefault();
  command.run();
}

export function listenToKeys() {
  window.addEventListener('keydown', onKeyDown);
  const endBlink = () => {
    view.blinking.value = false;
  };
  window.addEventListener('keyup', (event) => {
    if (event.key === 'b' || event.key === 'B') endBlink();
  });
  window.addEventListener('blur', endBlink);
}
