"""Which sources of a target are compiled as one: prints lines `GROUP<tab>FILE`, the groups numbered from 0.

    unity_groups.py LINES FILE...    a group has about LINES lines at most

In one translation unit the unnamed namespaces of all files are one. So two files share a group only if no name that
one of them keeps to itself (`namespace { int twice(int); }`, `#define ROW`) is a word of the other: then no name is
defined twice, and none hides or overloads what the other means. First fit, as graphs are coloured greedily.
"""

import pathlib
import re
import sys

WORD = re.compile(r"\b[A-Za-z_]\w*\b")
# Strings and comments use no names; characters are there for '"'.
NOT_CODE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//(?! namespace$)[^\n]*|/\*.*?\*/', re.M | re.S)
PRIVATE = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.M | re.S)
# What stands at the beginning of a line of a namespace, up to what it declares: clang-format indents nothing there.
TYPE = re.compile(r"^(?:struct|class|union|enum(?: class)?|using|concept)\s+(\w+)", re.M)
VALUE = re.compile(r"^(?!(?:class|struct|union|enum|using|return)\b)[A-Za-z_][^;(){}=\n]*?\b(\w+)(?:\[\w*\])*\s*(?:=|;|\{)", re.M)
FUNCTION = re.compile(r"^[A-Za-z_][^;(){}=]*?\b(\w+)\(", re.M)
STATIC = re.compile(r"^static [^;(){}=]*?\b(\w+)\s*[(={;]", re.M)
MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.M)
# The same in every file that says them.
SHARED = re.compile(r"^using (?:namespace .*|[\w:]+);|^namespace \w+ = .*;", re.M)


def read(path):
    """The names that a file keeps to itself, all its words, and its lines."""
    text = pathlib.Path(path).read_text()
    code = NOT_CODE.sub(" ", text)
    names = set(MACRO.findall(code)) | set(STATIC.findall(code))
    for match in PRIVATE.finditer(code):
        inside = SHARED.sub("", match.group(1))
        for pattern in (TYPE, VALUE, FUNCTION):
            names.update(pattern.findall(inside))
    return names, set(WORD.findall(code)), text.count("\n")


def groups(files, limit):
    """Lists of files, in the order of their first ones."""
    result = []
    for path in files:
        names, words, lines = read(path)
        for group in result:
            if (group["lines"] + lines <= limit and not names & group["words"]
                    and not words & group["names"]):
                break
        else:
            group = {"files": [], "names": set(), "words": set(), "lines": 0}
            result.append(group)
        group["files"].append(path)
        group["names"] |= names
        group["words"] |= words
        group["lines"] += lines
    return [group["files"] for group in result]


if __name__ == "__main__":
    for number, files in enumerate(groups(sys.argv[2:], int(sys.argv[1]))):
        for name in files:
            print(f"{number}\t{name}")
