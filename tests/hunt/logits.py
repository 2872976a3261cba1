"""What two runs predict, in every file that holds it, with no mistake or one: quiet, and named?

    python3 tests/hunt/logits.py [--seed 0] [--cases 60] [--keep DIR] [-v]

Needs numpy, torch and safetensors. A random model of words gives logits; B has rounding noise of
1e-4, and perhaps one mistake. Both are compared by plain `tensordiff A B`, which has to find by
itself that logits are all there is.
"""
import argparse
import collections
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy
import torch

import calibrate

PROGRAM = os.environ.get("TENSORDIFF", "build/tensordiff")


class Run:
    """Logits [T, V] of one sequence, and the tokens that it has seen."""

    def __init__(self, logits, ids, late=0):
        self.logits, self.ids, self.late = logits, ids, late

    def log_probs(self):
        x = self.logits.double()
        return x - x.logsumexp(-1, keepdim=True)

    def of_tokens(self):
        """The log-probability of each token after the first."""
        return self.log_probs()[:-1].gather(1, self.ids[1:, None])[:, 0].roll(self.late)


def as_pt(run, at, rng):
    torch.save({"logits": run.logits[None], "input_ids": run.ids[None]}, f"{at}/logits.pt")
    return f"{at}/logits.pt"


def as_npy(run, at, rng):
    numpy.save(f"{at}/logits.npy", run.logits.numpy())
    return f"{at}/logits.npy"


def as_safetensors(run, at, rng):
    from safetensors.torch import save_file
    save_file({"lm_head.logits": run.logits.contiguous()}, f"{at}/out.safetensors")
    return f"{at}/out.safetensors"


def as_npz(run, at, rng):
    numpy.savez(f"{at}/out.npz", logits=run.logits.half().numpy())
    return f"{at}/out.npz"


def as_last(run, at, rng):
    numpy.save(f"{at}/logits.npy", run.logits[-1].numpy())
    return f"{at}/logits.npy"


def as_raw(run, at, rng):
    """llama-debug --save-logits."""
    run.logits[-1].float().numpy().tofile(f"{at}/llamacpp-model.bin")
    run.ids.int().numpy().tofile(f"{at}/llamacpp-model-tokens.bin")
    return at


def as_base(run, at, rng):
    """llama.cpp's --kl-divergence-base: one chunk."""
    count, words = run.logits.shape
    first = count // 2
    with open(f"{at}/base.kld", "wb") as out:
        out.write(b"_logits_" + struct.pack("<Iii", count, words, 1))
        out.write(run.ids.int().numpy().tobytes())
        for row in run.log_probs()[first:count - 1]:
            least = max(float(row.min()), float(row.max()) - 16)
            scale = (float(row.max()) - least) / 65535
            levels = ((row - least) / scale + 0.5).clamp(min=0).to(torch.int64)
            levels = levels.clamp(max=65535).numpy().astype("<u2")
            out.write(struct.pack("<ff", scale, least) + levels.tobytes())
            out.write(b"\0\0" * (words % 2))
    return f"{at}/base.kld"


def top(row, count=3):
    values, ids = row.topk(count)
    return {f"w{i}": float(v) for v, i in zip(values, ids.tolist())}


def as_completions(run, at, rng):
    rows = run.log_probs()
    body = {"tokens": [f"w{i}" for i in run.ids.tolist()], "text_offset": list(range(len(run.ids))),
            "token_logprobs": [None] + [float(x) for x in run.of_tokens()],
            "top_logprobs": [None] + [top(row) for row in rows[:-1]]}
    with open(f"{at}/completions.jsonl", "w") as out:
        out.write(json.dumps({"choices": [{"text": "x", "logprobs": body}]}) + "\n")
    return f"{at}/completions.jsonl"


def as_chat(run, at, rng):
    rows = run.log_probs()
    content = [{"token": f"w{i}", "logprob": float(x), "bytes": None, "top_logprobs": [
        {"token": k, "logprob": v, "bytes": None} for k, v in top(row).items()]}
        for i, x, row in zip(run.ids[1:].tolist(), run.of_tokens(), rows)]
    with open(f"{at}/chat.json", "w") as out:
        json.dump({"choices": [{"logprobs": {"content": content}}]}, out)
    return f"{at}/chat.json"


def as_prompt(run, at, rng):
    rows = run.log_probs()
    listed = [None] + [{str(i): {"logprob": float(x), "rank": 1, "decoded_token": f"w{i}"},
                        **{k[1:]: {"logprob": v, "rank": n + 1, "decoded_token": k}
                           for n, (k, v) in enumerate(top(row).items())}}
                       for i, x, row in zip(run.ids[1:].tolist(), run.of_tokens(), rows)]
    with open(f"{at}/prompt.jsonl", "w") as out:
        out.write(json.dumps({"prompt_logprobs": listed}) + "\n")
    return f"{at}/prompt.jsonl"


def as_rollout(run, at, rng):
    with open(f"{at}/rollout.jsonl", "w") as out:
        out.write(json.dumps({"response_ids": run.ids[1:].tolist(),
                              "response_mask": [1] * (len(run.ids) - 1),
                              "rollout_log_probs": run.of_tokens().tolist()}) + "\n")
    return f"{at}/rollout.jsonl"


def as_trainer(run, at, rng):
    more = rng.randrange(0, 5)
    pad = lambda t: torch.cat([t, t.new_zeros(more)])[None]
    mask = torch.ones(len(run.ids) - 1, dtype=torch.int64)
    torch.save({"old_log_probs": pad(run.of_tokens().float()), "responses": pad(run.ids[1:]),
                "response_mask": pad(mask)}, f"{at}/batch.pt")
    return f"{at}/batch.pt"


FULL = [as_pt, as_npy, as_safetensors, as_npz, as_base]
TOKENS = [as_completions, as_chat, as_prompt, as_rollout, as_trainer]
GROUPS = [("words", [as_pt, as_npy, as_safetensors, as_npz]), ("base", [as_base]),
          ("last", [as_last]), ("raw", [as_raw]), ("completions", [as_completions]),
          ("chat", [as_chat]), ("prompt", [as_prompt]),
          ("rollout", [as_rollout, as_trainer])]

MISTAKES = {  # (what it does to Run(logits, ids), how), codes that name it; in groups.
    "temperature": (lambda run, rng: Run(run.logits / rng.choice([0.7, 1.3, 2.0]), run.ids),
                    ["temperature"], "words base completions chat prompt last raw"),
    "shift": (lambda run, rng: Run(run.logits.roll(rng.choice([1, 2, -1]), 0), run.ids),
              ["token_shift", "misaligned"], "words base"),
    "late": (lambda run, rng: Run(run.logits, run.ids, rng.choice([1, 2, -1])),
             ["token_shift", "misaligned"], "rollout completions chat"),
    "no norm": (lambda run, rng: Run(run.logits * (0.5 + 1.5 * torch.rand(len(run.ids), 1)),
                                     run.ids), ["final_norm_missing"], "words base"),
    "masked": (lambda run, rng: Run(torch.cat([torch.zeros_like(run.logits[:5]), run.logits[5:]]),
                                    run.ids), ["masked_prompt"], "words"),
    "permuted": (lambda run, rng: Run(run.logits[:, torch.randperm(run.logits.shape[1])], run.ids),
                 ["vocabulary_permuted"], "words base"),
    "padded": (lambda run, rng: Run(torch.cat([run.logits, torch.full(
        (len(run.ids), 24), 5.0)], 1),
                                    run.ids), ["vocabulary_padded"], "words last"),
    "in front": (lambda run, rng: Run(torch.cat([run.logits[:, :0], torch.full(
        (len(run.ids), 7), -9.0), run.logits], 1), run.ids), ["vocabulary_shifted"], "words"),
    "other": (lambda run, rng: Run(run.logits + torch.randn_like(run.logits) * 1.5, run.ids),
              None, "words base last raw completions chat prompt rollout"),
}
QUIET = {
    "same": (lambda run, rng: run, "words base last raw completions chat prompt rollout"),
    "constant": (lambda run, rng: Run(run.logits + 3 * torch.randn(len(run.ids), 1), run.ids),
                 "words"),
    "shorter": (lambda run, rng: Run(run.logits[-9:], run.ids[-9:]), "words rollout"),
    "last": (lambda run, rng: Run(run.logits[-1:], run.ids[-1:]), "words"),
    "minus infinity": (lambda run, rng: Run(torch.cat([run.logits, torch.full(
        (len(run.ids), 24), float("-inf"))], 1), run.ids), "words"),
}


def compared(a, b):
    done = subprocess.run([PROGRAM, a, b, "-o", "report"], capture_output=True, text=True,
                          timeout=120)
    text = subprocess.run([PROGRAM, a, b], capture_output=True, text=True, timeout=120).stdout
    try:
        return done.returncode, json.loads(done.stdout), text
    except ValueError:
        return done.returncode, {"error": done.stderr[-300:]}, text


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--cases", type=int, default=60)
    options.add_argument("--keep")
    options.add_argument("--tally", help="a file for calibrate.py")
    options.add_argument("-v", action="store_true")
    options = options.parse_args()
    torch.set_num_threads(1)
    table = collections.defaultdict(collections.Counter)
    for number in range(options.cases):
        rng = random.Random(f"{options.seed} {number}")
        torch.manual_seed(rng.randrange(1 << 30))
        group, writers = GROUPS[number % len(GROUPS)]
        count, words = rng.randrange(24, 60), rng.choice([64, 97, 160, 1000])
        logits = torch.randn(count, words) * rng.choice([1.0, 2.0, 3.0])
        run = Run(logits, torch.cat([torch.tensor([1]),
                                     torch.distributions.Categorical(logits=logits).sample()[:-1]]))
        kinds = [k for k, v in {**MISTAKES, **QUIET}.items() if group in v[-1].split()]
        kind = rng.choice(kinds)
        change = (MISTAKES.get(kind) or QUIET[kind])[0]
        noise = rng.choice([0, 1e-5, 1e-4])
        other = change(Run(run.logits + noise * torch.randn_like(logits), run.ids), rng)
        folder = tempfile.mkdtemp(prefix="logits-")
        os.makedirs(f"{folder}/a"), os.makedirs(f"{folder}/b")
        writer_a = rng.choice(writers)
        writer_b = rng.choice(writers) if group == "words" else writer_a
        a, b = writer_a(run, f"{folder}/a", rng), writer_b(other, f"{folder}/b", rng)
        code, report, text = compared(a, b)
        codes = [f["code"] for f in report.get("findings", [])]
        bug = kind in MISTAKES
        for finding in report.get("findings", []):
            wanted = MISTAKES[kind][1] if bug else ()
            if not finding.get("convention") and wanted is not None:
                calibrate.add(options.tally, group, "predictions", finding,
                              finding["code"] in wanted)
        right = code == (1 if bug else 0)
        by_kl = "KL" in text
        named = not bug or MISTAKES[kind][1] is None or any(c in MISTAKES[kind][1] for c in codes)
        row = table[group]
        row["bugs" if bug else "clean"] += 1
        row["located" if bug else "quiet"] += right
        row["named"] += bug and right and named
        row["kl"] += by_kl
        if options.v or not (right and named and by_kl):
            print(f"{number} {group} {writer_a.__name__} {writer_b.__name__} '{kind}' "
                  f"noise {noise} "
                  f"T {count} V {words}: rc {code} {codes} {'' if by_kl else 'NO KL'} "
                  f"{report.get('error', '')}", flush=True)
        if options.keep and not (right and named and by_kl):
            shutil.rmtree(f"{options.keep}/{options.seed}-{number}", ignore_errors=True)
            shutil.move(folder, f"{options.keep}/{options.seed}-{number}")
        else:
            shutil.rmtree(folder)
    total = collections.Counter()
    for group, row in table.items():
        total.update(row)
        print(f"{group:12} clean {row['quiet']}/{row['clean']} "
              f"found {row['located']}/{row['bugs']} "
              f"named {row['named']}/{row['bugs']} by KL {row['kl']}/{row['bugs'] + row['clean']}")
    print(f"all: clean without alarm {total['quiet']}/{total['clean']}, found "
          f"{total['located']}/{total['bugs']}, named {total['named']}/{total['bugs']}, "
          f"by KL {total['kl']}/{total['bugs'] + total['clean']}")


if __name__ == "__main__":
    sys.exit(main())
