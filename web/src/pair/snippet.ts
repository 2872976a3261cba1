// Python that loads both sides of a pair, brings them to one layout and gives the number of the
// page: NumPy alone, and torch for pickled checkpoints.
import { toNumber } from '../fmt/number';
import type { Pair, Session, Source } from '../net/types';

/** Finds a tensor in a file, an archive or a folder by the name that the page shows. */
const LOAD = `import io, json, os, tarfile, zipfile
import numpy as np

def safetensors(data):
    size = int.from_bytes(data[:8], "little")
    types = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2",
             "I8": "i1", "U8": "u1", "BOOL": "?"}
    for name, at in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            first, end = at["data_offsets"]
            raw = data[8 + size + first:8 + size + end]
            if at["dtype"] == "BF16":
                values = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
            else:
                values = np.frombuffer(raw, "<" + types[at["dtype"]])
            yield name, values.reshape(at["shape"])

def flat(value, name=""):
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
        yield name, value.numpy()
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from flat(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            yield from flat(each, f"{name}.{i}" if name else str(i))

def tensors(label, data):
    if label.endswith(".npy"):
        yield "", np.load(io.BytesIO(data))
    elif label.endswith(".npz"):
        yield from np.load(io.BytesIO(data)).items()
    elif label.endswith(".safetensors"):
        yield from safetensors(data)
    elif label.endswith((".pt", ".pth", ".bin", ".ckpt")):
        import torch
        yield from flat(torch.load(io.BytesIO(data), map_location="cpu", weights_only=True))

def files(path):
    if os.path.isdir(path):
        for folder, _, names in sorted(os.walk(path)):
            for name in sorted(names):
                yield os.path.join(folder, name), open(os.path.join(folder, name), "rb").read
    elif path.endswith((".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2")):
        archive = tarfile.open(path)
        for member in archive.getmembers():
            if member.isfile():
                yield member.name, archive.extractfile(member).read
    elif path.endswith(".zip"):
        archive = zipfile.ZipFile(path)
        for name in archive.namelist():
            yield name, lambda name=name: archive.read(name)
    else:
        yield path, open(path, "rb").read

def load(path, name):
    for label, read in files(path):
        stem = os.path.splitext(os.path.basename(label))[0]
        single = label == path
        if single or name == stem or name.startswith((stem + ".", stem + "/")):
            for key, values in tensors(label, read()):
                if name in (key or stem, stem + "." + key, stem + "/" + key):
                    return values.astype("f8")
    raise KeyError(f"{name} in {path}")
`;

/** What is inside quotes in Python. */
const quoted = (text: string) => JSON.stringify(text);

const pathOf = (sources: readonly Source[]) => sources[0]?.path ?? sources[0]?.name ?? '';

const CAN_LOAD = /\.(npy|npz|safetensors|pt|pth|bin|ckpt|zip|tar|tgz|tar\.(gz|xz|bz2))$/;

/** Null where one side lies in pieces on several ranks, or its format needs more than this. */
export function snippetOf(pair: Pair, session: Session, at: readonly number[]): string | null {
  const lines: string[] = [];
  for (const side of ['a', 'b'] as const) {
    const data = pair[side];
    if (!data) continue;
    const sources = session.mode === 'explore' ? session.a : session[side];
    const path = pathOf(sources);
    const isFolder = (sources[0]?.files ?? 1) > 1 && !CAN_LOAD.test(path);
    const steps = pair.numpy?.[side];
    if (sources.length !== 1 || !(CAN_LOAD.test(path) || isFolder) || !steps) return null;
    lines.push(`${side} = load(${quoted(path)}, ${quoted(data.name)})`);
    if (steps !== side) lines.push(`${side} = ${steps}`);
  }
  if (pair.shape && pair.a && pair.b) {
    const place = at.length > 0 ? `[${at.join(', ')}]` : '[()]';
    lines.push(`print("at ${at.join(', ')}:", a${place}, b${place})`);
    const max = toNumber(pair.metrics?.maxAbs ?? null);
    const said = Number.isFinite(max) && pair.applied === null ? `  # ${max}` : '';
    lines.push(`print("max |b - a|:", np.nanmax(np.abs(b - a)))${said}`);
  }
  return `${LOAD}\n${lines.join('\n')}\n`;
}
