#!/usr/bin/env python3
"""page.py must notice each way in which the committed bundle can be wrong."""

import pathlib
import tempfile
import unittest

import page


class PageTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.web = pathlib.Path(self.folder.name)
        for name in page.BUILD_FILES:
            (self.web / name).write_text(name)
        (self.web / "src").mkdir()
        (self.web / "src/main.tsx").write_text("main")
        (self.web / "dist/assets").mkdir(parents=True)
        (self.web / "dist/index.html").write_text("built")
        (self.web / "dist.sha256").write_text(page.stamp_text(self.web))

    def test_a_fresh_bundle_is_fine(self):
        self.assertEqual(page.problems(self.web), [])

    def test_a_changed_source_makes_it_stale(self):
        (self.web / "src/main.tsx").write_text("other")
        self.assertEqual(page.problems(self.web),
                         ["web/dist does not fit its sources: run ./dev page"])

    def test_so_does_a_new_source_but_not_a_test(self):
        (self.web / "src/main.test.ts").write_text("test")
        self.assertEqual(page.problems(self.web), [])
        (self.web / "src/more.ts").write_text("more")
        self.assertEqual(len(page.problems(self.web)), 1)

    def test_a_bundle_edited_by_hand_is_noticed(self):
        (self.web / "dist/assets/extra.js").write_text("extra")
        self.assertEqual(page.problems(self.web),
                         ["web/dist does not fit its bundle: run ./dev page"])

    def test_without_a_stamp_all_is_stale(self):
        (self.web / "dist.sha256").unlink()
        self.assertEqual(len(page.problems(self.web)), 2)

    def test_a_large_bundle_is_refused(self):
        noise = page.hashlib.shake_256(b"cannot be compressed").digest(130_000)
        (self.web / "dist/assets/large.js").write_bytes(noise)
        (self.web / "dist.sha256").write_text(page.stamp_text(self.web))
        self.assertRegex(page.problems(self.web)[0], r"^web/dist: 13\d+ bytes compressed")


if __name__ == "__main__":
    unittest.main()
