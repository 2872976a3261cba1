"""The folder of a capture."""

from __future__ import annotations

import pathlib


class CaptureError(RuntimeError):
    """The capture cannot begin, or could not write what it was asked to."""


def prepare_folder(path: pathlib.Path) -> None:
    """Makes the folder, or empties it of an earlier capture; anything else in it is an error."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        old = list(path.iterdir())
        for file in old:
            shard = file.name.startswith("tensors-") and file.suffix == ".safetensors"
            if file.name not in ("trace.json", "trace.json.part") and not shard:
                raise CaptureError(
                    f"{path}: has '{file.name}', which is not part of a capture; name a new folder")
        for file in sorted(old, key=lambda file: file.name != "trace.json"):
            file.unlink()
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror or error}") from error
