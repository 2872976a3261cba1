#!/usr/bin/env python3
"""What the program does to the system while it reads hostile files, seen through strace.

It may create no file with a name, make no connection and start no program but one: itself, for the
HDF5 library, by way of /proc/self/exe and with the word hdf5-child first (src/base/sandbox.h).
Temporary files have no name from the start: O_TMPFILE, or unlinked before anything is in them.
Skipped where strace is missing or may not trace.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("TENSORDIFF", str(ROOT / "build/tensordiff"))
CORPUS = pathlib.Path(os.environ.get("TENSORDIFF_CORPUS", ROOT / "../shared/corpus"))
TASK = re.search(r'kTask = "([^"]+)"', (ROOT / "src/formats/hdf5_wire.h").read_text())[1]

WATCHED = ("execve,execveat,socket,connect,bind,sendto,open,openat,openat2,creat,mkdir,mkdirat,"
           "rename,renameat,renameat2,link,linkat,symlink,symlinkat,mknod,mknodat,unlink,unlinkat,"
           "chmod,fchmodat,truncate")
OWN = ("malicious_reduce.pt", "custom_class.pt", "whole_module.pt", "numpy_inside.pth")
HOSTILE = ("mmaitre314__picklescan", "promptfoo__modelaudit", "protectai__modelscan",
           "HDFGroup__cve_hdf5", "zip-rs__zip2", "alexcrichton__tar-rs", "golang__go",
           "numpy__numpy")


def may_trace():
    if not shutil.which("strace"):
        return False
    run = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return run.returncode == 0


def is_allowed(call):
    """Whether a line of the trace is one of what the program is known to do."""
    name, _, arguments = call.partition("(")
    if name in ("execve", "execveat"):
        return arguments.startswith(f'"{PROGRAM}"') or (
            arguments.startswith('"/proc/self/exe"') and f'"{TASK}"' in arguments)
    if name == "socket":  # The pair that parent and child talk through is no socket() call.
        return False
    if name in ("connect", "bind"):
        return False
    if name == "sendto":  # On that pair: it names no address.
        return ", NULL, 0" in arguments
    if name in ("open", "openat", "openat2"):
        if "O_TMPFILE" in arguments or '"/dev/null"' in arguments:
            return True
        return not re.search(r"O_CREAT|O_WRONLY|O_RDWR|O_TRUNC|O_APPEND", arguments)
    return False


class Trace(unittest.TestCase):
    def setUp(self):
        if not may_trace():
            self.skipTest("strace is not here or may not trace")

    def trace(self, paths):
        """All that was done beyond what is allowed, while each of the files was checked."""
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "trace")
            here = pathlib.Path(folder, "here")
            here.mkdir()
            environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
            run = subprocess.run(
                ["strace", "-f", "-qq", "-s", "200", "-e", f"trace={WATCHED}", "-e",
                 "signal=none", "-o", log, PROGRAM, "check", *map(str, paths)],
                cwd=here, env=environment, capture_output=True, timeout=600, check=False)
            self.assertIn(run.returncode, (0, 1, 2), run.stderr.decode()[-500:])
            self.assertEqual(list(here.iterdir()), [])
            calls = [line.split(maxsplit=1)[1] for line in log.read_text().splitlines()]
        self.assertTrue(any(call.startswith("execve") for call in calls), "nothing was traced")
        return [call for call in calls
                if re.match(r"\w+\(", call) and not is_allowed(call)]

    def test_the_watch_sees_a_file_that_is_created(self):
        self.assertFalse(is_allowed('openat(AT_FDCWD, "x", O_WRONLY|O_CREAT, 0666) = 3'))
        self.assertFalse(is_allowed('execve("/bin/sh", ["sh"], 0x1) = 0'))
        self.assertFalse(is_allowed("socket(AF_INET, SOCK_STREAM, IPPROTO_IP) = 3"))
        self.assertFalse(is_allowed('mkdir("x", 0777) = 0'))

    def test_our_own_files(self):
        data = ROOT / "tests/data"
        paths = [data / "formats" / name for name in OWN]
        paths += sorted((data / "hdf5").glob("*.*")) + sorted((data / "torch").glob("*.p*"))
        paths += sorted((ROOT / "tests/fuzz/corpus").glob("*"))
        self.assertEqual(self.trace([path for path in paths if path.suffix != ".py"]), [])

    def test_the_files_of_others(self):
        if not CORPUS.is_dir():
            self.skipTest(f"there is no corpus at {CORPUS}")
        paths = [path for folder in HOSTILE for path in sorted((CORPUS / folder).rglob("*"))
                 if path.is_file()]
        self.assertGreater(len(paths), 100)
        self.assertEqual(self.trace(paths), [])


if __name__ == "__main__":
    unittest.main()
