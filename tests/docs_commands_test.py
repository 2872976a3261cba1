#!/usr/bin/env python3
"""Runs every command of the docs that docs_test.py does not: those without their output.

A command is a line of a code block, or code in a sentence, that starts with "tensordiff ". The
files that it names are small ones of tests/data under the same name. A command has to end with 0 or
1: an option, a command or a way to write an input that is not there any more ends with 2.
$TENSORDIFF says where the program is.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/data"
PROGRAM = pathlib.Path(os.environ.get("TENSORDIFF", ROOT / "build/tensordiff")).resolve()

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
INLINE = re.compile(r"`(tensordiff [^`]+)`")
OTHERS = ("console", "python", "cpp", "json")  # Blocks that are run elsewhere, or are no commands.
# Run by tests that bring the servers: server_test.py, tests/browser, remote_test.py.
SERVERS = re.compile(r"^tensordiff (serve|demo)\b|\b(hf|s3|gs|https)://")

# What stands in place of a file, and how a placeholder is filled in.
STAND_INS = {
    "formats/pair_f32_a.pth": "A a R1 C1 FILE MODEL R2 before.pt base.pt step_1000.pt",
    "formats/pair_f32_b.pth": "B b R3 C2 C3 after.pt head.pt step_2000.pt step_3000.pt",
    "formats/all_dtypes.safetensors":
        "model.safetensors base.safetensors head.safetensors run/step-1.safetensors "
        "run/step-2.safetensors ckpt/step-1000/model.safetensors "
        "ckpt/step-2000/model.safetensors engine/weights/model.safetensors",
    # Dumps of all layouts are read in dumps_test.py.
    "dumps/hooks.pt":
        "reference.pt mine.pt run_1.pt run_2.pt other reference/hooks.pt hooks.pt acts.pt "
        "trace.pt hidden.pt cache.pt ref/hooks.pt port/hooks.pt data_dump/hooks.pt "
        "tllm_debug/hooks.pt dump_path/hooks.pt DUMP dump_path_a/hooks.pt dump_path_b/hooks.pt "
        "out/hooks.pt log/tensor_dumps/hooks.pt DIR/dump_1/hooks.pt output_dir/hooks.pt "
        "state.msgpack outputs.json debug/hooks.pt stats.csv",
    "parity/reference.zip": "reference.zip",
    "parity/nan_rows.tar.gz": "mine.tar.gz",
    "logits/logits.pt": "reference/logits.pt mine/logits.npy a.kld b.kld",
    "logits/train.jsonl": "train.jsonl",
    "logits/lp_rollout.jsonl": "rollout.jsonl",
    "settings/tolerances.yaml": "tolerances.yaml",
}
EVAL_LOG = """ggml_debug:  norm-0 = (f32)  RMS_NORM(inp_embd{2, 1, 1, 1}, }) = {2, 1, 1, 1}
                                     [
                                      [
                                       [      1.0000,       2.0000],
                                      ],
                                     ]
                                     sum = 3.000000
"""
FILLED_IN = [("[options]", ""), ("[NAME]", ""), ("[DIR]", "set"), ("[FOLDER]", "set"),
             ("[COMMAND]", "compare"), (" COMMAND", " compare"), ("...", ""), ("…", ""),
             (" PARTS", " part-*.tdpart"), ("K/N", "1/3"), ("7/16", "1/3"), (" /", " "),
             ("merge results", "merge part-*-of-3.tdpart"),
             ("batch A B", "batch ref port")]
# A job of one task, as Slurm describes it.
JOB = {"A": "A", "B": "B", "SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_CPUS_PER_TASK": "2"}


def commands_of(page):
    """The commands of a page, in order, each once."""
    found = {}
    for kind, text in BLOCK.findall(page):
        for line in text.splitlines() if kind not in OTHERS else []:
            # What follows three spaces or a # explains the command.
            line = re.split(r"\s{3,}|\s+#", line.strip())[0]
            line = re.sub(r"^(-\s+)?run:\s*(\|\s*)?", "", line)
            if line.startswith("tensordiff "):
                found[line] = None
    for command in INLINE.findall(BLOCK.sub("", page)):
        found[" ".join(command.split())] = None
    return [command for command in found if not SERVERS.search(command)]


def lay_out(folder):
    for source, names in STAND_INS.items():
        for name in names.split():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(DATA / source, path)
    for name in ("eval.log", "eval_cpu.log", "eval_gpu.log"):
        (folder / name).write_text(EVAL_LOG)
    (folder / "set").mkdir()
    (folder / "set/.tensordiff.yaml").write_text("rtol: 0.01\n")
    (folder / "LIST.yaml").write_text("runs:\n  - {a: A, b: B}\n")


def run(command, folder, environment):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    return done.returncode, done.stderr


def filled_in(command):
    words = command.split()
    if len(words) == 2 and words[1].isalpha() and words[1].islower():
        return f"tensordiff help {words[1]}"  # Only the name of a command.
    for old, new in FILLED_IN:
        command = command.replace(old, new)
    return command


def check(path, environment):
    """Runs the commands of a page in a folder of their own; how many it has, and what failed."""
    commands = commands_of(path.read_text())
    failed = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = {**environment, **JOB, "HOME": name}
        lay_out(folder)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        run("tensordiff digest MODEL; for n in 1000 2000; do tensordiff digest ckpt/step-$n; done",
            folder, environment)
        if not any("--part 3/3" in command for command in commands):
            run("for k in 1 2 3; do tensordiff A B --part $k/3; done", folder, environment)
        for command in commands:
            status, message = run(filled_in(command), folder, environment)
            if status not in (0, 1):
                page = path.relative_to(ROOT)
                failed.append(f"{page}: '{command}' ended with {status}: {message}")
    return len(commands), failed


def main():
    environment = {"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    count, failed = 0, []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        done, wrong = check(path, environment)
        count += done
        failed += wrong
    print("\n".join(failed))
    print(f"{count} commands, {len(failed)} failed")
    return 1 if failed or count < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
