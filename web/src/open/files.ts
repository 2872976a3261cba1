// Files of a drop, folders walked; names are only ever shown as text.

const FILES_MAX = 2000;

function filesOfEntry(entry: FileSystemEntry, found: File[]): Promise<void> {
  if (entry.isFile)
    return new Promise((done, fail) =>
      (entry as FileSystemFileEntry).file((file) => {
        found.push(file);
        done();
      }, fail),
    );
  return walk((entry as FileSystemDirectoryEntry).createReader(), found);
}

/** A reader gives a folder in parts, until a part is empty. */
async function walk(reader: FileSystemDirectoryReader, found: File[]): Promise<void> {
  while (found.length < FILES_MAX) {
    const entries = await new Promise<FileSystemEntry[]>((done, fail) =>
      reader.readEntries(done, fail),
    );
    if (entries.length === 0) return;
    for (const entry of entries) await filesOfEntry(entry, found);
  }
}

export async function filesOfDrop(data: DataTransfer): Promise<File[]> {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.() ?? null);
  if (entries.every((entry) => !entry?.isDirectory)) return [...data.files];
  const found: File[] = [];
  for (const entry of entries) if (entry) await filesOfEntry(entry, found);
  return found.sort((x, y) => x.name.localeCompare(y.name, 'en', { numeric: true }));
}
