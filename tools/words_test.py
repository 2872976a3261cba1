#!/usr/bin/env python3
"""Tests of words.py: each rule is shown failing."""

import pathlib
import unittest

import words


def problems(text):
    return list(words.problems([(pathlib.Path("docs/x.md"), 1, text)]))


class Spelling(unittest.TestCase):
    def test_finds_a_misspelt_word(self):
        self.assertEqual(problems("Compare two modles."),
                         ["docs/x.md:1: 'modles' is misspelt, or missing in tools/words/known.txt"])

    def test_knows_our_terms_and_names(self):
        text = "A dtype of safetensors, RoPE and DeepSeek; `foobrx` in q_prjo.wght"
        self.assertEqual(problems(text), [])

    def test_the_list_is_sorted(self):
        listed = [line for line in (words.LISTS / "known.txt").read_text().splitlines()
                  if not line.startswith("#")]
        self.assertEqual(listed, sorted(set(listed)))


class Phrases(unittest.TestCase):
    def test_every_banned_phrase_is_an_expression_with_advice(self):
        for phrase, instead in words.banned():
            self.assertTrue(instead, phrase.pattern)

    def test_finds_sides_that_are_not_capital(self):
        for text in ("b = 0.125 × a", "b is a rounded to bf16", "2 tensors of b", "only in a",
                     "a's norm"):
            self.assertTrue(problems(text), text)
        for text in ("B = 0.125 × A", "the axes b s (h d)", "2 tensors of a file"):
            self.assertEqual(problems(text), [], text)

    def test_finds_phrases_of_the_language_page(self):
        for text in ("Safe on files of strangers", "rejected: explains nothing of a part of it",
                     "git knows tensordiff no more", "in whose name this is found", "1 files"):
            self.assertTrue(problems(text), text)

    def test_says_nothing_of_code(self):
        self.assertEqual(problems("the option `only in b` of the shell"), [])


class Sources(unittest.TestCase):
    def test_literals_are_sentences_only(self):
        text = 'say("two words"); key("word");  // "a comment here"\n#include "a b.h"\n'
        self.assertEqual(list(words.literals(text)), [(1, "two words")])

    def test_prose_has_no_code(self):
        found = dict(words.prose("one\n```\nfoobrx b = 2 × a\n```\ntwo\n"))
        self.assertEqual([found[1], found[5]], ["one", "two"])
        self.assertNotIn("foobrx", "".join(found.values()))

    def test_the_page_is_read_without_its_classes(self):
        text = '<p className="pri seg xyz abq">Compare two models</p>'
        self.assertEqual([each for _, each in words.page_texts(text)], ["Compare two models"])

    def test_all_texts_of_the_page_are_read(self):
        text = """  text: 'Esc cancels it',
  say(`${n} pairs of ${all} differ`);  // 'not this one'
  const shade = 'flag';
  <span class={`pri ${kind} seg`}>
    The axes of A, an arrow,
    those of B
  </span>
"""
        self.assertEqual(list(words.page_texts(text)),
                         [(1, "Esc cancels it"), (2, "… pairs of … differ"),
                          (4, "The axes of A, an arrow, those of B")])

    def test_all_kinds_of_sources_are_read(self):
        suffixes = {path.suffix for path, _ in words.sources()}
        self.assertEqual(suffixes, {".cpp", ".h", ".ts", ".tsx", ".py", ".md"})


if __name__ == "__main__":
    unittest.main()
