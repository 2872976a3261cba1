#!/usr/bin/env python3
"""usage: score_corpus.py PROGRAM CORPUS

Shows every file of the corpus to the program and counts, for each repository that its MANIFEST.md
lists: read, refused by name, and wrong. Wrong is a crash, a hang, a refusal without a reason, a
file that appeared, or the opposite of what the manifest expects.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys

SECONDS_MAX = 10
NOT_DATA = re.compile(r"(?i)(^|/)(licen[sc]e|copying|notice|readme|_measured)[^/]*$"
                      r"|\.(md|txt|json)$")

# What the manifest demands of files whose path matches: (must be read, must be refused).
NOTHING = "$^"
EXPECTED = {
    "tracel-ai/burn": (r"(?<!broken)\.(pt|safetensors|tar)$", r"broken\.pt$"),
    "huggingface/candle": (r"\.(pt|pth|npy|npz|safetensors)$", NOTHING),
    "onnx/onnx": (r"\.(onnx|pb)$", NOTHING),
    "tensorflow/serving": (r"variables\.index$|export(-\d+-of-\d+)?$", NOTHING),
    "ggml-org/llama.cpp": (r"\.gguf$", NOTHING),
    "ggml-org/whisper.cpp": (NOTHING, r"\.bin$"),
    "scipy/scipy": (NOTHING, r"corrupt|malformed|bad_"),
    "protectai/modelscan": (NOTHING, NOTHING),
}


def repositories(manifest):
    """owner/name of each row of the table."""
    return re.findall(r"^\| ([\w.-]+/[\w.-]+) \|", manifest.read_text(), re.MULTILINE)


def show(program, path):
    """"read", "refused" or what is wrong."""
    try:
        run = subprocess.run([program, "show", str(path)], capture_output=True,
                             timeout=SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer in {SECONDS_MAX} s"
    if run.returncode < 0:
        return f"killed by signal {-run.returncode}"
    if run.returncode == 0:
        return "read"
    # A file that opens and holds nothing readable says so tensor by tensor.
    named = run.stderr.strip() or b"cannot be shown: " in run.stdout
    return "refused" if named else "refused without a reason"


def judge(outcome, path, expected):
    must_read, must_refuse = (re.compile(pattern) for pattern in expected)
    if outcome == "read" and must_refuse.search(path):
        return "read, but should be refused"
    if outcome == "refused" and must_read.search(path):
        return "refused, but should be read"
    return outcome


def score(program, folder, repository):
    expected = EXPECTED.get(repository, (NOTHING, NOTHING))
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    data = [path for path in files if not NOT_DATA.search(str(path.relative_to(folder)))]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        outcomes = list(pool.map(lambda path: show(program, path), data))
    judged = [judge(outcome, str(path), expected) for outcome, path in zip(outcomes, data)]
    wrong = [f"{path}: {outcome}" for outcome, path in zip(judged, data)
             if outcome not in ("read", "refused")]
    wrong += [f"{path}: appeared" for path in folder.rglob("*")
              if path.is_file() and path not in set(files)]
    return judged.count("read"), judged.count("refused"), wrong


def main():
    program, corpus = sys.argv[1], pathlib.Path(sys.argv[2])
    if not (corpus / "MANIFEST.md").is_file():
        print(f"skipped: there is no corpus at {corpus}")
        return 0
    print(f"{'repository':28} {'read':>6} {'refused':>8} {'wrong':>6}")
    totals, all_wrong = [0, 0, 0], []
    for repository in repositories(corpus / "MANIFEST.md"):
        read, refused, wrong = score(program, corpus / repository.replace("/", "__"), repository)
        print(f"{repository:28} {read:6} {refused:8} {len(wrong):6}")
        totals = [sum(pair) for pair in zip(totals, (read, refused, len(wrong)))]
        all_wrong += wrong
    print(f"{'all':28} {totals[0]:6} {totals[1]:8} {totals[2]:6}")
    print(*all_wrong, sep="\n", end="\n" if all_wrong else "")
    return 1 if all_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
