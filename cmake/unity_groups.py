"""Which sources of a target are compiled as one: prints lines `GROUP<tab>FILE`, the groups numbered from 0.

    unity_groups.py LINES FILE...    a group has about LINES lines at most

In one translation unit the unnamed namespaces that files have in one namespace are one. So two files share a group only
if no name that one of them keeps to itself (`namespace { int twice(int); }`, `#define ROW`) is a word of the other, where
that is in the same namespace or in one within: then no name is defined twice, and none hides or overloads what the
other means. First fit, those that go with the fewest others first, as graphs are coloured greedily (Welsh and Powell,
"An upper bound for the chromatic number of a graph", 1967).
"""

import pathlib
import re
import sys

WORD = re.compile(r"\b[A-Za-z_]\w*\b")
# Strings and comments use no names; characters are there for '"'.
NOT_CODE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//(?! namespace\b)[^\n]*|/\*.*?\*/', re.M | re.S)
PRIVATE = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.M | re.S)
NAMESPACE = re.compile(r"^(?:(inline )?namespace ([\w:]+) \{|\}  // namespace [\w:]+)$", re.M)
# What stands at the beginning of a line of a namespace, up to what it declares: clang-format indents nothing there.
TYPE = re.compile(r"^(?:struct|class|union|enum(?: class)?|using|concept)\s+(\w+)", re.M)
VALUE = re.compile(r"^(?!(?:class|struct|union|enum|using|return)\b)[A-Za-z_][^;(){}=\n]*?\b(\w+)(?:\[\w*\])*\s*(?:=|;|\{)", re.M)
FUNCTION = re.compile(r"^[A-Za-z_][^;(){}=]*?\b(\w+)\(", re.M)
STATIC = re.compile(r"^static [^;(){}=]*?\b(\w+)\s*[(={;]", re.M)
MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.M)
# The same in every file that says them.
SHARED = re.compile(r"^using (?:namespace .*|[\w:]+);|^namespace \w+ = .*;", re.M)


def spaces(code):
    """Namespaces as they are opened and closed: pairs of a place and the whole name of where one is from there."""
    inside = []
    for match in NAMESPACE.finditer(code):
        if match.group(2):
            inside.append("" if match.group(1) else match.group(2))  # What is inline is seen around it, too.
        else:
            inside.pop()
        yield match.end(), "::".join(filter(None, inside))


class File:
    """What a file keeps to itself, as pairs of a namespace and a name, with the words and namespaces it has."""

    def __init__(self, path):
        text = pathlib.Path(path).read_text()
        code = NOT_CODE.sub(" ", text)
        places = [(0, ""), *spaces(code)]
        self.path = path
        self.lines = text.count("\n")
        self.words = set(WORD.findall(code))
        self.spaces = {space for _, space in places}
        self.names = {("", name) for name in MACRO.findall(code) + STATIC.findall(code)}
        for match in PRIVATE.finditer(code):
            space = [space for place, space in places if place <= match.start()][-1]
            inside = SHARED.sub("", match.group(1))
            for pattern in (TYPE, VALUE, FUNCTION):
                self.names.update((space, name) for name in pattern.findall(inside))

    def sees(self, space):
        return not space or any((each + "::").startswith(space + "::") for each in self.spaces)

    def minds(self, other):
        """Whether what the other keeps to itself may be what this one means."""
        return any(name in self.words and self.sees(space) for space, name in other.names)


def groups(paths, limit):
    """Lists of files."""
    files = [File(path) for path in paths]
    apart = {file: {other for other in files if file is not other and (file.minds(other) or other.minds(file))}
             for file in files}
    result = []
    for file in sorted(files, key=lambda file: -len(apart[file])):
        for group in result:
            if sum(each.lines for each in group) + file.lines <= limit and apart[file].isdisjoint(group):
                group.append(file)
                break
        else:
            result.append([file])
    return [[file.path for file in group] for group in result]


if __name__ == "__main__":
    for number, files in enumerate(groups(sys.argv[2:], int(sys.argv[1]))):
        for name in files:
            print(f"{number}\t{name}")
