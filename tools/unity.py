#!/usr/bin/env python3
"""Join sources into few units, so that a build from scratch parses each header a few times only.

Two thirds of the time of compiling one file are its headers. So files are included
into one unit, by turns, as long as none of them can change the meaning of another: what one file
keeps to itself (its anonymous namespace) must not be named like anything that another file of the
unit declares or includes, and its macros must not occur there at all. Headers come first.

Usage: unity.py FOLDER LIST: LIST names the sources, a line each; prints the units it wrote into
FOLDER, a line each. A unit that has not changed is not written again.
"""
import pathlib
import re
import sys

# The lines of one unit at most. Names allow no fewer units than this gives; larger ones would only
# keep one core busy when the others have ended.
LINES_MAX = 1500

COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', re.S)
NAMESPACE = re.compile(r'\bnamespace\s*([\w:]*)\s*\{')
DIRECTIVE = re.compile(r'^\s*#(?:[^\n]*\\\n)*[^\n]*', re.M)
DEFINE = re.compile(r'^\s*#\s*define\s+(\w+)', re.M)
TYPE = re.compile(r'\s*(?:template\s*<[^{;]*?>\s*)?'
                  r'(?:struct|class|enum|union|concept|using|namespace)\s+(?:class\s+|struct\s+)?'
                  r'(?:\[\[\w+\]\]\s*)?([\w:]+)')
WORD = re.compile(r'(?<![\w.])(?<!->)[A-Za-z_]\w*')
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
TEST = re.compile(r'\s*TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)')
ROOTS = [pathlib.Path(__file__).resolve().parent.parent / name for name in ('src', 'include', '.')]


def plain(text):
    """The text without comments and strings; digits keep their separators."""
    return COMMENT_OR_STRING.sub(lambda m: ' ' if m[0][0] != "'" else "' '",
                                 re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", '', text))


def end_of(text, opening):
    """The place of the brace that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == '{') - (text[at] == '}')
        if depth == 0:
            return at
    return len(text)


def declared(text):
    """The names that a stretch of a namespace declares."""
    names = set()
    # A body in braces ends a declaration as a semicolon does.
    for statement in re.split(r';|\x00', bodies_as(text, '\x00')):
        if re.match(r'\s*using\s+namespace\b', statement):
            continue
        kind = TYPE.match(statement)
        if kind:
            names.add(kind[1].split(':')[-1])
            continue
        test = TEST.match(statement)
        if test:
            names.add(f'{test[1]}_{test[2]}_Test')  # The class that GoogleTest makes of it.
            continue
        head = re.sub(r'\[\[.*?\]\]|\balignas\([^)]*\)', '', statement)
        head = without_arguments(head).split('(')[0]
        for one in head.split(','):  # `int kA = 1, kB = 2` declares two.
            words = re.findall(r'[A-Za-z_]\w*', re.split(r'[={\[]', one)[0])
            names.update(words[-1:])
    return names


def without_arguments(text):
    """The text without the arguments of templates, whose commas separate no declarations."""
    shorter = re.sub(r'(?<=\w)\s*<[^<>;]*>', '', text)
    return text if shorter == text else without_arguments(shorter)


def bodies_as(text, mark):
    """The text with each outermost body in braces replaced by a mark."""
    kept, depth = [], 0
    for char in text:
        if char == '{':
            depth += 1
        elif char == '}':
            depth -= 1
            if depth == 0:
                kept.append(mark)
        elif depth == 0:
            kept.append(char)
    return ''.join(kept)


def spoken_for(text):
    """The names that the namespaces of a file declare, those without a name apart."""
    shared, own, at, outside = set(), set(), 0, []
    while found := NAMESPACE.search(text, at):
        outside.append(text[at:found.start()])
        end = end_of(text, found.end() - 1)
        inner_shared, inner_own = spoken_for(text[found.end():end])
        own |= inner_own if found[1] else inner_shared | inner_own
        shared |= inner_shared if found[1] else set()
        at = end + 1
    return shared | declared(''.join(outside) + text[at:]), own


class File:
    """One source or header: what it declares, and which of our headers are behind it."""
    known = {}

    def __init__(self, path):
        raw = path.read_text()
        text = plain(raw)
        self.path, self.lines = path, raw.count('\n')
        self.words = set(WORD.findall(text))
        self.macros = set(DEFINE.findall(text))
        self.shared, self.own = spoken_for(DIRECTIVE.sub('', text))
        self.includes = INCLUDE.findall(raw)
        self.hides = bool(re.search(r'^(?:struct|class) \w+::\w+', text, re.M))
        # Highway compiles such a file once for each kind of processor, by including it again.
        self.alone = 'HWY_TARGET_INCLUDE' in raw

    def behind(self):
        """This file and all of our headers that it includes."""
        reached, left = [self], list(self.includes)
        while left:
            name = left.pop()
            if name not in File.known:
                folders = [*ROOTS, self.path.parent]
                path = next((each / name for each in folders if (each / name).exists()), None)
                File.known[name] = File(path) if path else None
            header = File.known[name]
            if header and header not in reached:
                reached.append(header)
                left += header.includes
        return reached


class Source(File):
    def __init__(self, path):
        super().__init__(path)
        parts = self.behind()
        self.all_names = self.own.union(*(part.shared for part in parts))
        self.all_words = set().union(*(part.words for part in parts))


def disturbs(one, other):
    """Whether what one file keeps to itself could be taken for something in the other."""
    return bool(one.own & other.all_names or one.macros & other.all_words)


def units(sources, lines_max=LINES_MAX):
    """The sources in few groups: those that disturb the most others are placed first."""
    ways = {one: [other for other in sources
                  if other is not one and (disturbs(one, other) or disturbs(other, one))]
            for one in sources}
    made = []
    for source in sorted(sources, key=lambda s: (-len(ways[s]), s.path)):
        for unit in made:
            if not (source.alone or unit[0].alone or any(s in ways[source] for s in unit)) and \
                    sum(s.lines for s in unit) + source.lines <= lines_max:
                unit.append(source)
                break
        else:
            made.append([source])
    return made


def text_of(unit):
    # A header beside its source is found from there only.
    headers = sorted({name for s in unit for name in s.includes
                      if any((root / name).exists() for root in ROOTS)})
    lines = [f'#include "{name}"' for name in headers] if len(unit) > 1 else []
    if any(s.hides for s in unit):  # GCC takes an included file for a header, where that is wrong.
        lines.append('#pragma GCC diagnostic ignored "-Wsubobject-linkage"')
    return '\n'.join(lines + [f'#include "{s.path}"' for s in unit]) + '\n'


def main():
    folder, listing = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    made = set()
    for unit in units([Source(pathlib.Path(p)) for p in listing.read_text().split()]):
        path = folder / f'{unit[0].path.parent.name}_{unit[0].path.name}'
        text = text_of(unit)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        made.add(path)
        print(path)
    for stale in set(folder.glob('*.cpp')) - made:
        stale.unlink()


if __name__ == '__main__':
    main()
