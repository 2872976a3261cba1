#!/usr/bin/env python3
"""Checks the spelling and the phrases of everything a person reads; run as a test.

    words.py [--unknown]     with --unknown, prints each word that is in no list, once

Read are the sentences in string literals of the program and the page, in the help of the Python
package, and in the pages of docs/, README.md and CHANGELOG.md. tools/words/known.txt has the words
that aspell does not know, tools/words/banned.txt the phrases that are not to be used.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LISTS = ROOT / "tools/words"

# A string literal of C++, TypeScript or Python, without its marks.
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
PAGE_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'|`((?:[^`\\\n]|\\.)*)`')
# Not language: code, addresses, format fields, options, names with dots or underscores, numbers.
NOISE = re.compile(r"```.*?```|`[^`\n]*`|<!--.*?-->|\]\([^)]*\)|https?://\S+|\{[^}\n]*\}|"
                   r"\\[nt\"e&-]|%[a-z]|--?[a-z][\w-]*|\S*[_/=@#<>|$()\[\]]\S*|"
                   r"\b\w+\.\w[\w.]*|(?<!\S)\.\w+|\S*\d\S*|\b[0-9a-f]{6}\b", re.S)
WORD = re.compile(r"[A-Za-z]+")


def lines_of(text):
    return list(enumerate(text.split("\n"), 1))


def literals(text):
    """Sentences in string literals: those with a space between two words."""
    for number, line in lines_of(text):
        if line.lstrip().startswith(("//", "#include", "*", "#")):
            continue
        code = re.sub(r"  // .*", "", line)  # A comment behind it is not read by users.
        for found in LITERAL.findall(code):
            if re.search(r"[A-Za-z,;:] +[A-Za-z]", found):
                yield number, found


def page_texts(text):
    """String literals in any of the three marks of TypeScript, and the texts between tags."""
    text = re.sub(r'class(Name)?=("[^"]*"|\{`[^`]*`\})', "", text)
    for number, line in lines_of(text):
        if line.lstrip().startswith(("//", "import", "*", "/*")):
            continue
        for found in PAGE_LITERAL.findall(re.sub(r"  // .*", "", line)):
            # The words of a template, without its values.
            said = re.sub(r"\$\{[^}]*\}", "…", next(filter(None, found), ""))
            if re.search(r"[A-Za-z,;:…] +[A-Za-z]", said):
                yield number, said
    # A text may go on over lines; code between tags has other marks.
    for found in re.finditer(r">([^<>{}=;]*[a-z,]\s[^<>{}=;]*)(?=[<{])", text):
        yield text.count("\n", 0, found.start(1)) + 1, " ".join(found[1].split())


def prose(text):
    """A page of Markdown, without its code."""
    keep = re.sub(r"```.*?```|<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    yield from lines_of(keep)


def sources(root=ROOT):
    """(path, how its texts are found)."""
    rules = [("src", "*.cpp", literals), ("src", "*.h", literals), ("web/src", "*.ts", page_texts),
             ("web/src", "*.tsx", page_texts), ("python/tensordiff", "*.py", literals),
             ("docs", "*.md", prose)]
    for folder, pattern, texts in rules:
        for path in sorted((root / folder).rglob(pattern)):
            if "_test." not in path.name and "test_" not in path.name and ".test." not in path.name:
                yield path, texts
    for name in ("README.md", "CHANGELOG.md", "python/README.md"):
        yield root / name, prose


def words_in(text):
    for word in WORD.findall(NOISE.sub(" ", text)):
        # Names and abbreviations (RoPE, GGUF, DeepSeek) are not language.
        if len(word) > 2 and (word.islower() or word.istitle()):
            yield word


def misspelt(words):
    """Those that neither aspell nor our list knows."""
    known = {line.strip().lower() for line in (LISTS / "known.txt").read_text().splitlines()
             if not line.startswith("#")}
    asked = sorted({word for word in words if word.lower() not in known})
    listed = subprocess.run(["aspell", "--lang=en", "--encoding=utf-8", "list"],
                            input="\n".join(asked), text=True, capture_output=True, check=True)
    return set(listed.stdout.split())


def banned():
    """(expression, what to say instead) of each line "phrase => instead"."""
    for line in (LISTS / "banned.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            phrase, _, instead = line.partition(" => ")
            yield re.compile(phrase), instead


def problems(texts):
    """texts: (path, line, text). Sentences "path:line: what is wrong"."""
    unknown = misspelt(word for _, _, text in texts for word in words_in(text))
    phrases = list(banned())
    for path, number, text in texts:
        for word in words_in(text):
            if word in unknown:
                yield f"{path}:{number}: '{word}' is misspelt, or missing in tools/words/known.txt"
        plain = re.sub(r"`[^`\n]*`", "`", text)
        for phrase, instead in phrases:
            if found := phrase.search(plain):
                yield f"{path}:{number}: '{found[0]}': say {instead}"


def main():
    texts = [(path.relative_to(ROOT), number, text) for path, find in sources()
             for number, text in find(path.read_text())]
    if "--unknown" in sys.argv:
        print("\n".join(sorted(misspelt(word for *_, text in texts for word in words_in(text)))))
        return 0
    found = list(problems(texts))
    print("\n".join(found))
    print(f"{len(texts)} texts, {len(found)} problems")
    return 1 if found or len(texts) < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
