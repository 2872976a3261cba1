#!/usr/bin/env python3
"""Shows what mutants.py changes in a source, and what it leaves alone."""

import unittest

import mutants


def changed(source):
    return {after for _, _, after in mutants.mutants_of(source)}


class Mutants(unittest.TestCase):
    def test_turns_comparisons_and_arithmetic(self):
        self.assertEqual(changed("  return a < b + c;"),
                         {"  return a <= b + c;", "  return a < b - c;"})

    def test_negates_conditions_and_drops_early_returns(self):
        self.assertEqual(changed("  if (done) work();"), {"  if (!done) work();"})
        self.assertEqual(changed("  if (!done) work();"), {"  if (done) work();"})
        self.assertEqual(changed("    return;"), {"    ;"})

    def test_leaves_texts_comments_and_directives_alone(self):
        for line in ['  say("a < b");', "  // a < b", "#include <a>", "  work();  // 1 + 1",
                     "  assert(a == b);"]:
            self.assertEqual(changed(line), set(), line)

    def test_changes_one_line_and_keeps_the_rest(self):
        source = "a\nb == c\nd\n"
        number, _, after = mutants.mutants_of(source)[0]
        self.assertEqual(mutants.with_line(source, number, after), "a\nb != c\nd\n")

    def test_draws_the_same_for_the_same_seed(self):
        source = "\n".join(f"  x{i} = a < b;" for i in range(50))
        self.assertEqual(mutants.drawn(source, 5, 1), mutants.drawn(source, 5, 1))
        self.assertEqual(len(mutants.drawn(source, 5, 1)), 5)
        self.assertNotEqual(mutants.drawn(source, 5, 1), mutants.drawn(source, 5, 2))


if __name__ == "__main__":
    unittest.main()
