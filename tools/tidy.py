#!/usr/bin/env python3
"""The rules of the tree that a program can check; run as a test.

A rule is a function from the tree (path -> text) to sentences "path:line: what is wrong".
Each rule has tests in tidy_test.py that show it failing. What clang-tidy sees better (names,
numbers of parameters) is in .clang-tidy.
"""

import pathlib
import re
import subprocess
import sys

from tested_by import TESTED_BY

# A folder may include itself and what stands before it, never what stands after it.
LAYERS = """base remote tensor naming packed formats match align dumps convert layout compare
            diagnose logits analyze report request pair_row pipeline parts digest runs api serve
            cli""".split()
# Neither of the two may include the other.
STRANGERS = [{"formats", "match"}, {"diagnose", "analyze"}]
# The public headers, in include/, which the sources that implement them include.
PUBLIC = "tensordiff"

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
COLUMNS_MAX = 100

CODE = (".h", ".cpp", ".py", ".ts", ".tsx", ".css")
DATA = ("tests/data/", "tests/fuzz/corpus/", "tests/fuzz/results/", "demo/", "web/dist/")
BINARY = (".png", ".woff2", ".ico")
SELF = ("tools/tidy.py", "tools/tidy_test.py")

# Which page has a table row for each variant of a type.
DOCUMENTED_IN = {
    "Format": ["README.md", "docs/formats.md"],
    "FolderFormat": ["README.md", "docs/formats.md"],
    "Packing": ["docs/formats.md"],
    "Matcher": ["docs/matching.md"],
    "Aligner": ["docs/matching.md"],
    "Diagnosis": ["docs/diagnosis.md"],
    "Analysis": ["docs/analyses.md"],
}


def is_code(path):
    return path.endswith(CODE) or path == "dev"


def is_test(path):
    return path.endswith(("_test.cpp", "_test.py"))


def is_cpp(path):
    return path.endswith((".h", ".cpp"))


def cpp_sources(tree):
    """The C++ of the program itself, without its tests."""
    return {path: text for path, text in tree.items()
            if path.startswith("src/") and is_cpp(path) and not is_test(path)}


def other_files(tree):
    """All but this program, which spells out what it forbids, and its tests, which contain it."""
    return {path: text for path, text in tree.items() if path not in SELF}


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def find_lines(tree, pattern, message):
    """`message` may use {found}, what the pattern found, and its groups {0}, {1}..."""
    return [f"{path}:{number}: {message.format(*found.groups(), found=found[0].strip())}"
            for path, text in tree.items()
            for number, line in enumerate(text.split("\n"), 1)
            if (found := re.search(pattern, line))]


# --- files and lines ---


def text_is_clean(tree):
    problems = []
    for path, text in tree.items():
        if "\ufffd" in text:
            problems.append(f"{path}:1: not UTF-8")
        if text and not text.endswith("\n"):
            problems.append(f"{path}:{line_of(text, len(text))}: no newline at the end")
    return problems + find_lines(tree, r"[ \t]+$|\r", "space at the end of the line")


def files_are_short(tree):
    return [f"{path}:1: {count} lines, more than {FILE_LINES_MAX}: split it by noun"
            for path, text in tree.items()
            if is_code(path) and (count := text.count("\n")) > FILE_LINES_MAX]


def lines_are_short(tree):
    code = {path: text for path, text in tree.items() if is_code(path)}
    return find_lines(code, ".{%d}" % (COLUMNS_MAX + 1), f"longer than {COLUMNS_MAX} columns")


def files_say_what_they_are(tree):
    """With a comment on their first line; a source may leave it to its header."""
    return [f"{path}:1: does not open with a comment that says what it is"
            for path, text in cpp_sources(tree).items()
            if not text.startswith("//") and path.replace(".cpp", ".h") not in set(tree) - {path}]


def todo_has_issue(tree):
    return find_lines(other_files(tree), r"\bTODO\b(?!\(#\d+\))",
                      "TODO without an issue: TODO(#123)")


def no_path_of_one_machine(tree):
    return find_lines(other_files(tree), r"(?<![\w.:/\\*-])/(?:work|home|root)(?![\w.-])",
                      "'{found}' exists on one machine only")


def no_registry_host(tree):
    # By what such hosts are called rather than by their names, which have no place here either.
    host = r"https?://(?:[\w-]+\.)*(?:registry|pypi|pythonhosted|crates|proxy|deb)\.[\w.]+"
    return find_lines(other_files(tree), host, "'{found}': packages are installed by name")


# --- C++ ---


def without_literals(text):
    """The same C++ with comments, strings and directives blanked, line for line."""
    literal = (r'R"(?P<mark>\w*)\(.*?\)(?P=mark)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
               r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\])+'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*")
    return re.sub(literal, lambda found: "\n" * found[0].count("\n"), text,
                  flags=re.DOTALL | re.MULTILINE)


def layer_of(path):
    """formats/pickle/vm.h -> formats, pipeline.h -> pipeline."""
    return re.split(r"[/.]", path)[0]


def layers_look_down(tree):
    problems = []
    for path, text in tree.items():
        layer = layer_of(path.removeprefix("src/"))
        if not path.startswith("src/") or layer not in LAYERS:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            include = re.match(r'#include "([^"]+)"', line)
            target = layer_of(include[1]) if include else layer
            if target not in LAYERS:
                if target != PUBLIC and "/" in include[1]:
                    problems.append(f"{path}:{number}: there is no folder {target} to include")
                continue
            upward = LAYERS.index(target) > LAYERS.index(layer)
            if upward or {layer, target} in STRANGERS:
                problems.append(f"{path}:{number}: {layer} must not include {target}")
    return problems


def layers_are_known(tree):
    """Of each folder, and of what stands beside the folders, tests included."""
    rooms = {layer_of(path.removeprefix("src/")).removesuffix("_test"): path for path in tree
             if path.startswith("src/") and is_cpp(path)}
    return [f"{path}:1: {room} is not in LAYERS of tools/tidy.py"
            for room, path in rooms.items() if room not in LAYERS]


def only_the_shell_prints(tree):
    inner = {path: without_literals(text) for path, text in cpp_sources(tree).items()
             if layer_of(path.removeprefix("src/")) not in ("cli", "serve")}
    return find_lines(inner, r"(?<![\w:.>])(?:std::)?(?:cout|cerr|f?printf|f?puts|_?exit|abort)\b"
                             r"|\bfmt::print\b",
                      "'{found}': only cli/ and serve/ print or exit")


def nothing_throws(tree):
    sources = {path: without_literals(text) for path, text in cpp_sources(tree).items()}
    return find_lines(sources, r"\bthrow\b", "our code throws nothing: Result<T>")


def try_stands_first_in_lists(tree):
    """GCC leaks the members of a braced list that were made before a TRY in it returns."""
    return [f"{path}:{line_of(code, found.end())}: TRY after other members of a braced list"
            for path, text in cpp_sources(tree).items()
            for code in [without_literals(text)]
            for found in re.finditer(r"\{(?!\s)[^{};]*,[^{};]*\bTRY\(", code)]


def no_macro_but_try(tree):
    return find_lines(cpp_sources(tree), r"^\s*#define (?!TRY\(|HWY_)(\w+)", "macro {0}")


def functions(text):
    """Yields (line, line count) of each function outside another, from its first word to its }."""
    text = without_literals(text)
    opened = []  # Of each { not yet closed: where its function starts, None for a scope.
    head = 0  # Where what stands before the next { starts.
    for mark in re.finditer(r"[{};]", text):
        before, after = text[head:mark.start()], mark.end()
        if mark[0] == "{":
            scope = re.match(r"\s*(?:(?:inline|typedef|template\s*<[^{]*>)\s+)*"
                             r"(?:namespace|extern|class|struct|enum|union)\b", before)
            inside = any(start is not None for start in opened)
            start = head + len(before) - len(before.lstrip())
            opened.append(None if scope or inside or ")" not in before else start)
        elif mark[0] == "}" and opened:
            start = opened.pop()
            if start is not None:
                first = line_of(text, start)
                yield first, line_of(text, after) - first + 1
        elif text.count("(", head, after) > text.count(")", head, after):
            continue  # The ; of a for loop.
        head = after


def functions_are_short(tree):
    return [f"{path}:{line}: a function of {count} lines, more than {FUNCTION_LINES_MAX}"
            for path, text in tree.items() if is_cpp(path) and not is_test(path)
            for line, count in functions(text) if count > FUNCTION_LINES_MAX]


def sources_tested_elsewhere(tree):
    for test, words in TESTED_BY.items():
        for word in words.split() if test in tree else []:
            if word.endswith("/"):
                folder = word
            else:
                yield f"{folder}{word}.cpp"


def sources_have_tests(tree):
    """Beside it, or some test that includes its header, or that names the row it defines."""
    tests = "".join(text for path, text in tree.items() if path.endswith("_test.cpp"))
    covered = set(sources_tested_elsewhere(tree))
    def has_test(path):
        stem = path.removesuffix(".cpp")
        return (f"{stem}_test.cpp" in tree
                or f'#include "{stem.removeprefix("src/")}.h"' in tests
                or any(re.search(rf"\b{row}\b", tests) for row in
                       re.findall(r"^constinit const \w+ (\w+::\w+) = ", tree[path], re.MULTILINE))
                or path in covered)

    return [f"{path}:1: has no test: no {pathlib.Path(path).stem}_test.cpp, none with its header"
            for path in cpp_sources(tree) if path.endswith(".cpp") and not has_test(path)]


# --- variants: a row each, listed in kAll, documented ---


def lists(tree):
    """(type, namespace) -> (header, names) for each explicit list of variants."""
    pattern = r"const (\w+)\* (?:const )?kAll\[\] = \{(.*?)\};"
    found = {}
    for path, text in cpp_sources(tree).items():
        for each in re.finditer(pattern, text, re.DOTALL):
            namespace = re.findall(r"^namespace (\w+) \{", text[:each.start()], re.MULTILINE)[-1]
            found[each[1], namespace] = (path, re.findall(r"&(\w+)", each[2]))
    return found


def rows(tree):
    """(type, namespace, name) -> (path, line, the name users see) for each variant defined."""
    pattern = r"^(?:extern )?(?:constinit )?const (\w+) (\w+)::(\w+) = \{(.*?)^\};"
    return {(row[1], row[2], row[3]): (path, line_of(text, row.start()), user_name(row[4]))
            for path, text in cpp_sources(tree).items()
            for row in re.finditer(pattern, text, re.DOTALL | re.MULTILINE)}


def user_name(body):
    name = re.search(r'\.(?:name|code) = "([^"]+)"', body)
    return name[1] if name else None


def variants_are_listed(tree):
    listed, defined = lists(tree), rows(tree)
    problems = [f"{path}:{line}: {namespace}::{name} is not listed in {namespace}::kAll"
                for (kind, namespace, name), (path, line, _) in defined.items()
                if name not in listed.get((kind, namespace), ("", []))[1]]
    return problems + [f"{path}:1: {namespace}::{name} is listed but not defined"
                       for (kind, namespace), (path, names) in listed.items()
                       for name in names if (kind, namespace, name) not in defined]


def variants_are_documented(tree):
    """Each row's name heads a line "| `name` |" of its page, and each such line names a row."""
    problems = []
    for page in sorted({page for pages in DOCUMENTED_IN.values() for page in pages}):
        heads = re.findall(r"^\| `([^`]+)` \|", tree.get(page, ""), re.MULTILINE)
        names = {name: f"{path}:{line}" for (kind, _, _), (path, line, name) in rows(tree).items()
                 if page in DOCUMENTED_IN.get(kind, [])}
        problems += [f"{place}: '{name}' has no row '| `{name}` |' in {page}"
                     for name, place in names.items() if name not in heads]
        problems += [f"{page}:1: there is no '{name}' in the program"
                     for name in heads if name not in names]
    return problems


RULES = [
    text_is_clean, files_are_short, lines_are_short, files_say_what_they_are, todo_has_issue,
    no_path_of_one_machine, no_registry_host, layers_look_down, layers_are_known,
    only_the_shell_prints, nothing_throws, try_stands_first_in_lists, no_macro_but_try,
    functions_are_short, sources_have_tests, variants_are_listed, variants_are_documented,
]


def read_tree(root):
    """All text files that git knows or would add, but for test data."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    paths = [path for path in listing.split("\0") if path and (root / path).is_file()]
    return {path: (root / path).read_bytes().decode(errors="replace")
            for path in sorted(set(paths))
            if not path.startswith(DATA) and not path.endswith(BINARY)
            and not re.match("tests/golden/.*/expected$", path)}


def check(tree):
    return [problem for rule in RULES for problem in rule(tree)]


def main():
    problems = check(read_tree(pathlib.Path(__file__).resolve().parent.parent))
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"tidy: {len(problems)} problems" if problems else "tidy: all rules hold")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
