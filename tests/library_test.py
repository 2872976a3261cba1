#!/usr/bin/env python3
"""The installed library: what is installed, what it shows, and a program outside the tree that
uses it, built by CMake and by pkg-config."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = os.environ["TENSORDIFF_BUILD"]
DEMO = [str(ROOT / "demo/reference.zip"), str(ROOT / "demo/constant_scale.tgz")]


def run(*command, status=0, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**os.environ, **environment})
    if done.returncode != status:
        raise AssertionError(f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.base = pathlib.Path(cls.folder.name)
        cls.prefix = cls.base / "installed"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_soname_has_the_part_of_the_version_that_may_break(self):
        library = self.prefix / "lib/libtensordiff.so"
        version = re.search(r"so\.(\d+)\.(\d+)\.\d+$", str(library.resolve()))
        soname = re.search(r"SONAME.*\[(.*)\]", run("readelf", "-d", library))[1]
        self.assertEqual(soname, f"libtensordiff.so.{version[1]}.{version[2]}")

    def test_shows_its_api_and_nothing_else(self):
        shown = run("nm", "-DC", "--defined-only", self.prefix / "lib/libtensordiff.so")
        names = {line.split(maxsplit=2)[2] for line in shown.splitlines()}
        self.assertEqual({name.split("(")[0].removesuffix("[abi:cxx11]") for name in names},
                         {f"tensordiff::api::{name}" for name in
                          ("compare", "exit_status", "use_program", "version")})

    def test_needs_no_library_of_the_program_alone(self):
        needed = run("readelf", "-d", self.prefix / "lib/libtensordiff.so")
        self.assertNotRegex(needed, "NEEDED.*(sqlite|hdf5|boost)")

    def test_a_project_outside_the_tree_finds_it_by_cmake(self):
        build = self.base / "by_cmake"
        run("cmake", "-S", ROOT / "examples/library", "-B", build, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        self.check_example(build / "example")

    def test_and_by_pkg_config(self):
        where = {"PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "tensordiff", **where).split()
        program = self.base / "example"
        run("g++", "-std=c++20", ROOT / "examples/library/example.cpp", *flags,
            f"-Wl,-rpath,{self.prefix}/lib", "-o", program)
        self.check_example(program)

    def check_example(self, program):
        told = run(program, status=1)
        self.assertIn("first divergence: layers.0.attn\n", told)
        self.assertIn("cause: scale: ", told)
        self.assertIn("first divergence: 1_post_attn\n", run(program, *DEMO, status=1))
        # The sandbox is the program that was installed with the library, and nobody says where.
        file = ROOT / "tests/data/hdf5/small.h5"
        self.assertIn("pairs\n", run(program, file, file))


if __name__ == "__main__":
    unittest.main()
