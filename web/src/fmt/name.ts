// Names where there is little room: the middle is cut, never the last part.

/** A name in two: the first may be cut by the page, the second is the end of so many letters. */
export function inTwo(name: string, endMax: number): [string, string] {
  for (let at = Math.max(0, name.length - endMax); at < name.length; at++)
    if (at > 0 && (name[at] === '.' || name[at] === '/'))
      return [name.slice(0, at), name.slice(at)];
  return [name, ''];
}
