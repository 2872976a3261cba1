// Formats as people know them: by the ends of file names.
import type { Health } from '../net/types';

/** The extension that the file has, else the usual one of its format, else the name. */
export function formatText(format: string, file: string, known: Health['formats']): string {
  const extensions = known.find((each) => each.name === format)?.extensions.split(' ') ?? [];
  const own = extensions.find((each) => each && file.toLowerCase().endsWith(each));
  return own ?? (extensions[0] || format);
}
