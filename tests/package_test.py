#!/usr/bin/env python3
"""What a package promises: hardening, manual pages, completions, the action, the hooks, recipes.

The steps of action.yml and of .pre-commit-hooks.yaml are run as they stand there, with a tarball
that is made of $TENSORDIFF. Installing the packages into clean roots is ./dev package --verify.
"""

import atexit
import functools
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("TENSORDIFF", ROOT / "build/tensordiff")).resolve()
PACKAGE = ROOT / "tools/package"
SAME, CHANGED = ROOT / "demo/reference.zip", ROOT / "demo/constant_scale.tgz"

sys.path.insert(0, str(PACKAGE))
from elf import hardening  # noqa: E402


def run(*command, **options):
    return subprocess.run([str(word) for word in command], text=True, capture_output=True,
                          **options)


def version():
    return re.search(r"project\(tensordiff VERSION ([0-9.]+)",
                     (ROOT / "CMakeLists.txt").read_text())[1]


class Temporary(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    @staticmethod
    @functools.cache
    def tarball():
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder)
        path = pathlib.Path(folder) / "package.tar.gz"
        with tarfile.open(path, "w:gz", compresslevel=1) as archive:
            archive.add(PROGRAM, f"tensordiff-{version()}-linux-x86_64/bin/tensordiff")
        return path


class Hardening(Temporary):
    @unittest.skipIf(os.environ.get("TENSORDIFF_SANITIZE"), "only packages are hardened")
    def test_the_program_is_hardened(self):
        self.assertEqual(hardening(PROGRAM.read_bytes()), [])

    def test_a_program_that_is_not_is_told(self):
        source = self.folder / "weak.c"
        source.write_text("int main(void) { return 0; }\n")
        weak = self.folder / "weak"
        subprocess.run(["g++", "-x", "c++", "-no-pie", "-fno-stack-protector", "-z", "execstack",
                        "-z", "norelro", "-z", "lazy", source, "-o", weak], check=True,
                       stderr=subprocess.DEVNULL)
        found = " ".join(hardening(weak.read_bytes()))
        for word in ("PIE", "RELRO", "bound", "stack protector", "fortified", "executable"):
            self.assertIn(word, found)

    def test_what_is_no_program_is_refused(self):
        with self.assertRaises(ValueError):
            hardening(b"\x7fELF" + struct.pack("B", 1) + bytes(100))


class Build(Temporary):
    """How a package is built must not depend on what else is installed."""

    def configured(self, *tools):
        """The commands that compile and link a package where only these of the tools are there."""
        build = self.folder / "build"
        shutil.rmtree(build, ignore_errors=True)
        found = {tool: self.folder / tool if tool in tools else "" for tool in ("ccache", "mold")}
        for tool in filter(None, found.values()):
            tool.write_text('#!/bin/sh\nexec "$@"\n')
            tool.chmod(0o755)
        wanted = ["TENSORDIFF_CCACHE=1"] if "ccache" in tools else ["-u", "TENSORDIFF_CCACHE"]
        done = run("env", *wanted, "cmake", "--preset", "tarball", "-S", ROOT, "-B", build,
                   *(f"-D{tool.upper()}={path}" for tool, path in found.items()))
        self.assertEqual(done.returncode, 0, done.stderr)
        # Without what starts the compiler, which is ccache.
        commands = [each["command"] for each in
                    json.loads((build / "compile_commands.json").read_text())]
        rules = "".join(path.read_text() for path in build.rglob("*.ninja"))
        self.assertEqual(f"{self.folder}/ccache" in rules, "ccache" in tools)
        return commands, re.findall(r"LINK_FLAGS = .*", rules)

    def test_it_is_the_same_with_and_without_tools_for_quicker_builds(self):
        if not shutil.which("cmake"):
            self.skipTest("no cmake here")
        commands, links = self.configured()
        self.assertEqual((commands, links), self.configured("ccache", "mold"))
        self.assertTrue(links)
        sources = [path for path in (ROOT / "src").rglob("*.cpp")
                   if not path.name.endswith("_test.cpp")]
        self.assertLess(len(commands), len(sources) / 2)  # Joined.


class Texts(Temporary):
    def setUp(self):
        super().setUp()
        subprocess.run([sys.executable, PACKAGE / "install_texts.py", PROGRAM, self.folder],
                       check=True)

    def test_every_command_has_a_manual_page_that_groff_can_read(self):
        pages = sorted((self.folder / "share/man/man1").iterdir())
        commands = run(PROGRAM, "help").stdout.split("\ncommands:\n")[1].split("\n\n")[0]
        self.assertEqual(len(pages), len(commands.splitlines()) + 1)
        if not shutil.which("groff"):
            self.skipTest("no groff here")
        for page in pages:
            text = run("gzip", "-dc", page).stdout
            done = run("groff", "-man", "-Tutf8", "-ww", "-z", "-K", "utf8", input=text)
            self.assertEqual(done.stderr, "", page)

    def test_bash_completes_words_of_options(self):
        script = self.folder / "share/bash-completion/completions/tensordiff"
        for line, wanted in [("tensordiff compare --color ", "auto always never"),
                             ("tensordiff a.pt b.pt --align ", "none auto"),
                             ("tensordiff check --fail-on d", "dangerous"),
                             ("tensordiff comp", "compare completions"),
                             ("tensordiff git ", "install uninstall"),
                             ("tensordiff runs --save-n", "--save-noise")]:
            words = line.split(" ")
            last = "" if words[-1] else "''"
            done = run("bash", "-c", f"source {script}; COMP_WORDS=({line}{last});"
                       f"COMP_CWORD={len(words) - 1}; _tensordiff; echo ${{COMPREPLY[@]}}",
                       cwd=self.folder)
            self.assertEqual((done.stdout.strip(), done.stderr), (wanted, ""), line)

    def test_zsh_completes_words_of_options(self):
        if not shutil.which("zsh"):
            self.skipTest("no zsh here")
        script = self.folder / "share/zsh/vendor-completions/_tensordiff"
        done = run("zsh", "-fc", "compdef() { :; }; compadd() { shift; echo $@; }; _files() { :; };"
                   f"source {script}; words=(tensordiff check --fail-on ''); CURRENT=4; PREFIX='';"
                   "_tensordiff; words=(tensordiff comp); CURRENT=2; _tensordiff")
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.splitlines()[0], "suspicious dangerous unreadable")
        self.assertIn("compare", done.stdout.splitlines()[1].split())

    def test_fish_completes_words_of_options(self):
        if not shutil.which("fish"):
            self.skipTest("no fish here")
        script = self.folder / "share/fish/vendor_completions.d/tensordiff.fish"
        done = run("fish", "--no-config", "-c",
                   f"source {script}; complete -C 'tensordiff compare --color a'",
                   env={**os.environ, "HOME": str(self.folder)})
        words = {line.split("\t")[0] for line in done.stdout.splitlines()}
        self.assertEqual(words, {"always", "auto"}, done.stderr)


class Action(Temporary):
    def steps(self, a, b, **inputs):
        """Runs the steps of action.yml as GitHub does, and returns what became of the last."""
        action = yaml.safe_load((ROOT / "action.yml").read_text())
        given = {name: field.get("default") for name, field in action["inputs"].items()}
        given.update({"a": str(a), "b": str(b), "package": str(self.tarball())}, **inputs)
        files = {name: str(self.folder / name)
                 for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            pathlib.Path(path).write_text("")
        base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder), **files,
                "GITHUB_ACTION_PATH": str(ROOT), "RUNNER_TEMP": str(self.folder / "runner")}
        pathlib.Path(base["RUNNER_TEMP"]).mkdir()
        for step in action["runs"]["steps"]:
            self.assertNotIn("${{", step["run"])  # Inputs reach a shell as variables only.
            environment = {name: re.sub(r"\${{ inputs\.(\w+) }}", lambda m: given[m[1]], value)
                           for name, value in step["env"].items()}
            added = pathlib.Path(files["GITHUB_PATH"]).read_text().split()
            environment = {**base, **environment, "PATH": ":".join([*added, base["PATH"]])}
            done = run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"],
                       env=environment, cwd=self.folder)
            if done.returncode:
                break
        outputs = pathlib.Path(files["GITHUB_OUTPUT"]).read_text()
        return done, outputs, pathlib.Path(files["GITHUB_STEP_SUMMARY"]).read_text()

    def test_passes_where_models_are_the_same(self):
        done, outputs, _ = self.steps(SAME, SAME)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("status=0", outputs)

    def test_fails_and_says_why_where_they_differ(self):
        done, outputs, summary = self.steps(SAME, CHANGED, options="--threads 1")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("first divergence", done.stdout)
        self.assertIn("status=1", outputs)
        self.assertTrue(summary)
        self.assertTrue((self.folder / "runner/tensordiff-report.json").stat().st_size)

    def test_does_not_fail_where_it_shall_not(self):
        done, outputs, _ = self.steps(SAME, CHANGED, fail="false")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("status=1", outputs)

    def test_fails_on_trouble(self):
        done, _, _ = self.steps(SAME, "nowhere", fail="false")
        self.assertEqual(done.returncode, 2)

    def test_a_wrong_checksum_is_refused(self):
        done = run(PACKAGE / "install.sh", "--package", self.tarball(), "--sha256", "0" * 64,
                   "--prefix", self.folder / "there")
        self.assertEqual(done.returncode, 1)
        self.assertFalse((self.folder / "there").exists())


class GetStarted(Temporary):
    """docs/get-started.md, as a stranger follows it: from the package to the named cause."""

    PAGE = ROOT / "docs/get-started.md"

    def setUp(self):
        super().setUp()
        line, name = re.search(r"^(tar -xzf (\S+))", self.PAGE.read_text(), re.M).groups()
        shutil.copy(self.tarball(), self.folder / name)
        subprocess.run(["bash", "-c", line], cwd=self.folder, check=True)
        self.program = self.folder / name.removesuffix(".tar.gz") / "bin/tensordiff"

    def test_the_installed_program_names_the_cause(self):
        self.assertRegex(self.PAGE.read_text(), r"\ncause +B = 0\.125 × A")
        done = run(sys.executable, ROOT / "tests/docs_test.py", self.PAGE,
                   env={**os.environ, "TENSORDIFF": str(self.program)})
        self.assertEqual(done.stdout, "1 passed, 0 failed\n", done.stdout + done.stderr)

    def test_the_hooks_of_the_page_make_dumps_to_compare(self):
        try:
            import torch
        except ImportError:
            self.skipTest("no torch here")
        blocks = re.findall(r"```python\n(.*?)```", self.PAGE.read_text(), re.S)
        hooks = next(block for block in blocks if "register_forward_hook" in block)
        torch.manual_seed(7)
        layers = [torch.nn.Linear(16, 16) for _ in range(4)]
        inputs = {"input": torch.randn(3, 16)}
        for name, scale in (("ref", 1.0), ("port", 0.5)):
            model = torch.nn.Sequential(*(torch.nn.Sequential(layer) for layer in layers))
            model[2].register_forward_hook(lambda m, args, out, scale=scale: out * scale)
            code = hooks.replace("ref.pt", str(self.folder / f"{name}.pt"))
            exec(code, {"torch": torch, "model": model, "inputs": inputs})
        done = run(self.program, "ref.pt", "port.pt", cwd=self.folder)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"first divergence: (layer )?2")
        self.assertIn("B = 0.5 × A", done.stdout)


class Hooks(Temporary):
    """The entries of .pre-commit-hooks.yaml, in a repository with one model."""

    def setUp(self):
        super().setUp()
        self.repository = self.folder / "repository"
        self.repository.mkdir()
        self.git("init", "-q")
        self.stage("tests/data/formats/f32.npy", "model.npy")
        self.stage("tests/data/formats/single_tensor.pth", "model.pth")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "model")

    def git(self, *words):
        subprocess.run(["git", *words], cwd=self.repository, check=True)

    def stage(self, source, name):
        shutil.copy(ROOT / source, self.repository / name)
        self.git("add", name)

    def hook(self, name, *files):
        hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
        entry = next(hook for hook in hooks if hook["id"] == name)
        for file in files:
            self.assertRegex(file, entry["files"])
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder),
                       "TENSORDIFF_PACKAGE": str(self.tarball())}
        return run(ROOT / entry["entry"].split()[0], *entry["entry"].split()[1:], *files,
                   cwd=self.repository, env=environment)

    def test_installs_itself_once_and_passes_the_same_shapes(self):
        done = self.hook("tensordiff-shapes", "model.npy")
        self.assertEqual(done.returncode, 0, done.stderr)
        installed = self.folder / f".cache/tensordiff/{version()}/bin/tensordiff"
        self.assertTrue(installed.exists())
        before = installed.stat().st_mtime_ns
        self.hook("tensordiff-shapes", "model.npy")
        self.assertEqual(installed.stat().st_mtime_ns, before)

    def test_refuses_other_shapes(self):
        self.stage("tests/data/formats/views.pth", "model.pth")
        done = self.hook("tensordiff-shapes", "model.pth")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("model.pth: names or shapes changed", done.stdout)

    def test_passes_a_new_file(self):
        self.stage("tests/data/formats/f32.npy", "new.npy")
        self.assertEqual(self.hook("tensordiff-shapes", "new.npy").returncode, 0)

    def test_refuses_code(self):
        self.stage("tests/data/formats/custom_class.pt", "odd.pt")
        self.assertEqual(self.hook("tensordiff-check", "odd.pt").returncode, 1)
        self.assertEqual(self.hook("tensordiff-check", "model.npy").returncode, 0)


class Recipes(unittest.TestCase):
    # Debian's name of a library -> its name in Homebrew and in conda.
    NAMES = {"libcli11-dev": "cli11 cli11", "libfmt-dev": "fmt fmt",
             "libhwy-dev": "highway libhwy", "libcurl4-openssl-dev": "curl libcurl",
             "libdeflate-dev": "libdeflate libdeflate",
             "zlib1g-dev": "zlib zlib", "libzstd-dev": "zstd zstd", "liblzma-dev": "xz xz",
             "libbz2-dev": "bzip2 bzip2", "libhdf5-dev": "hdf5 hdf5", "libaec-dev": "libaec libaec",
             "libboost1.81-dev": "boost libboost-headers", "libsqlite3-dev": "sqlite libsqlite",
             "libre2-dev": "re2 re2"}

    def test_they_ask_for_all_that_the_build_needs(self):
        needed = re.search(r'BUILD_PACKAGES="(.*?)"', (ROOT / "dev").read_text(), re.S)[1].split()
        libraries = [name for name in needed if name.startswith(("lib", "zlib"))
                     and name != "libgtest-dev"]
        formula = (PACKAGE / "homebrew/tensordiff.rb.in").read_text()
        text = re.sub("@[A-Z0-9_]+@", "x", (PACKAGE / "conda/meta.yaml.in").read_text())
        conda = [word.split()[0] for word in yaml.safe_load(text)["requirements"]["host"]]
        for library in libraries:
            brew_name, conda_name = self.NAMES[library].split()
            self.assertIn(f'"{brew_name}"', formula)
            self.assertIn(conda_name, conda)

    def test_versions_agree(self):
        changelog = (ROOT / "CHANGELOG.md").read_text()
        self.assertIn(f"## [{version()}]", changelog)
        told = run(PROGRAM, "--version").stdout
        self.assertTrue(told.startswith(f"tensordiff {version()}\ncommit "), told)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
