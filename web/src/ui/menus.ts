// What the menus offer: for a row of the list, for an element of the open pair.
import { copy, copyNumpy, copyValue, findAgain, jumpToMax } from '../pair/jumps';
import { open, openWorst, unpair } from '../store/deeds';
import * as state from '../store/state';
import * as view from '../store/view';
import { type Item, openMenu } from './Menu';

export function rowMenu(event: MouseEvent, row: number) {
  const store = state.store.value;
  const id = store.id(row);
  const [a, b] = [store.text('nameA', row), store.text('nameB', row)];
  const items: Item[] = [{ text: 'Open', key: 'Enter', run: () => open(id) }];
  if (store.isPair(row))
    items.push({ text: 'Open at its largest difference', run: () => openWorst(id) });
  if (a) items.push({ text: 'Copy the name in A', run: () => copy(a, 'the name') });
  if (b && b !== a) items.push({ text: 'Copy the name in B', run: () => copy(b, 'the name') });
  if (a && !b && !state.exploring.value)
    items.push({
      text: 'Choose for pairing',
      run: () => {
        state.chosenA.value = a;
      },
    });
  if (b && !a)
    items.push({
      text: 'Choose for pairing',
      run: () => {
        state.chosenB.value = b;
      },
    });
  if (store.isPair(row) && !state.exploring.value)
    items.push({ text: 'Unpair', key: 'U', run: () => unpair(id) });
  openMenu(event, `Menu of ${store.name(row)}`, items);
}

export function elementMenu(event: MouseEvent, at: readonly number[]) {
  view.goTo(at);
  const items: Item[] = [
    { text: 'Copy the values', key: 'Y', run: copyValue },
    { text: 'Copy the index', run: () => copy(at.join(', '), 'the index') },
    { text: 'Copy as Python', key: 'Shift+Y', run: copyNumpy },
  ];
  if (state.pair.value?.metrics)
    items.push(
      { text: 'Largest difference', key: 'M', run: jumpToMax },
      { text: 'Next difference', key: 'N', run: () => findAgain(1) },
    );
  items.push({
    text: 'Find a value…',
    key: 'F',
    run: () => {
      state.dialog.value = 'find';
    },
  });
  openMenu(event, `Menu of element ${at.join(', ')}`, items);
}
