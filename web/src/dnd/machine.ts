// Dragging, as one machine that pointer and keyboard both feed: idle → picked → over → deed.
//
// A row is moved before or after another row; a tensor without a partner is paired with one of
// the other side, or takes the place of that side in an existing pair.

export type Item =
  | { kind: 'row'; id: number; label: string }
  | { kind: 'tensor'; side: 'a' | 'b'; name: string; label: string };

export type Target =
  | { kind: 'row'; id: number; after: boolean; a: string; b: string }
  | { kind: 'tensor'; side: 'a' | 'b'; name: string };

export type Deed =
  | { kind: 'move'; id: number; to: number; after: boolean }
  | { kind: 'pair'; a: string; b: string };

export interface Drag {
  item: Item;
  over: Target | null;
  by: 'pointer' | 'keyboard';
}

/** What letting go would do; null where it would do nothing. */
export function deedOf(drag: Drag): Deed | null {
  const { item, over } = drag;
  if (!over) return null;
  if (item.kind === 'row') {
    if (over.kind !== 'row' || over.id === item.id) return null;
    return { kind: 'move', id: item.id, to: over.id, after: over.after };
  }
  const other = item.side === 'a' ? 'b' : 'a';
  const partner = over.kind === 'tensor' ? (over.side === other ? over.name : '') : over[other];
  if (!partner) return null;
  return item.side === 'a'
    ? { kind: 'pair', a: item.name, b: partner }
    : { kind: 'pair', a: partner, b: item.name };
}

/** The ids with one of them moved; the same array when nothing changes. */
export function moved(ids: readonly number[], deed: { id: number; to: number; after: boolean }) {
  const rest = ids.filter((id) => id !== deed.id);
  const at = rest.indexOf(deed.to);
  if (at < 0 || rest.length === ids.length) return ids;
  rest.splice(at + (deed.after ? 1 : 0), 0, deed.id);
  return rest;
}

/** What a screen reader hears. */
export function dragText(drag: Drag): string {
  const deed = deedOf(drag);
  if (!drag.over) return `${drag.item.label} picked up`;
  if (!deed) return 'nothing can be dropped here';
  if (deed.kind === 'pair') return `pair ${deed.a} with ${deed.b}`;
  const over = drag.over.kind === 'row' ? drag.over.a || drag.over.b : '';
  return `move ${deed.after ? 'after' : 'before'} ${over}`;
}
