"""python -m tensordiff.ray A B: a comparison on a Ray cluster.

Options that are not listed here are those of `tensordiff A B` and go to every part.
"""

from __future__ import annotations

import argparse
import sys
import time

from . import distributed


def _parsed(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="python -m tensordiff.ray", allow_abbrev=False,
        description="Compare two models on a Ray cluster.",
        epilog="All other options are those of tensordiff A B.")
    parser.add_argument("a", metavar="A", help="a path on all nodes, or an address")
    parser.add_argument("b", metavar="B", help="the same for the other model")
    parser.add_argument("--parts", type=int, metavar="N", help="default: as many as run at once")
    parser.add_argument("--cpus", type=int, metavar="N",
                        help="threads of each part; default: those of a node, at most 16")
    parser.add_argument("--nodes", default="", metavar="LIST",
                        help="ids, addresses or names of nodes, in the order of their data")
    parser.add_argument("--retries", type=int, default=3, metavar="N",
                        help="restarts of a part that was killed; default: 3")
    parser.add_argument("--address", help="of the cluster; default: RAY_ADDRESS, or start one here")
    parser.add_argument("--program", help="where tensordiff is on the nodes; default: in the wheel")
    parser.add_argument("-o", "--output", default="text", help="format of the report")
    parser.add_argument("--out", metavar="FILE", help="write the report to a file")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    for flag in ("--stats", "--brief", "--exit-zero"):
        parser.add_argument(flag, action="store_true", help="as for tensordiff")
    return parser.parse_known_args(argv)


def _merge_options(options: argparse.Namespace) -> list[str]:
    words = ["-o", options.output]
    for flag in ("stats", "brief", "exit_zero"):
        if getattr(options, flag):
            words.append("--" + flag.replace("_", "-"))
    return words


def main(argv: list[str]) -> int:
    options, others = _parsed(argv)
    start = time.monotonic()

    def show(done: int, parts: int) -> None:
        left = (time.monotonic() - start) / done * (parts - done)
        print(f"tensordiff: {done} of {parts} parts, about {left:.0f} s left", file=sys.stderr,
              flush=True)

    try:
        done = distributed.run(
            options.a, options.b, options=others, merge_options=_merge_options(options),
            parts=options.parts, cpus=options.cpus, retries=options.retries,
            nodes=[name for name in options.nodes.split(",") if name], address=options.address,
            program=options.program, progress=None if options.quiet else show)
    except (ValueError, ConnectionError, distributed.PartError, distributed.Interrupted) as error:
        print(f"tensordiff: {error}", file=sys.stderr)
        return 2
    if done.status not in (0, 1) or not options.quiet:
        sys.stderr.write(done.messages)
    if options.out:
        with open(options.out, "wb") as file:
            file.write(done.output)
    else:
        sys.stdout.buffer.write(done.output)
        sys.stdout.flush()
    return done.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
