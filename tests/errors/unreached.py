"""Lists the places that refuse something, and whose sentence no test has.

    python3 tests/errors/unreached.py

A place is a call of `fail` or one of its kin in C++, and a raise of an error in the Python client. An error
test asserts the whole sentence, so a sentence that matches no text of the tests is not tested.
"""

import ast
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What takes a format and refuses.
CPP_CALLS = re.compile(
    r"(?<![\w:])(?:\w+(?:\.|->|::))*(fail|refuse|refuse_form|refuse_program|refuse_here|refuse_for_now|usage|stop|malformed|corrupt|wrong)\s*\("
)
CPP_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
CPP_SUM = re.compile(r"[^,;{}\"]*\+[^,;{}\"]*")
PYTHON_CALLS = {
    "Cancelled", "DeadlineExceeded", "HandleLost", "InvalidArgument", "NotFound", "ResourceExhausted", "Unauthenticated",
    "Unavailable", "Unsupported", "invalid", "unknown_name", "unsupported", "_refuse", "_wrong",
}  # fmt: skip

HOLE = "\0"  # a value inside of a sentence
ACCEPTED = pathlib.Path(__file__).with_name("accepted.txt")
FEWEST_LETTERS = 8  # of the fixed parts of a sentence that can be recognised


def cpp_files(*folders):
    for folder in folders:
        yield from sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in (".cc", ".h"))


def unescaped(text):
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)


def closing(text, start):
    """The position behind the parenthesis that closes the one before `start`."""
    depth, position = 1, start
    while position < len(text) and depth:
        character = text[position]
        if character == '"':
            found = CPP_STRING.match(text, position)
            position = found.end() if found else position + 1
            continue
        depth += {"(": 1, ")": -1}.get(character, 0)
        position += 1
    return position


def literals(text):
    """The string literals of C++, neighbours joined; a value that is added between two is a hole."""
    joined, end = [], None
    for found in CPP_STRING.finditer(text):
        between = None if end is None else text[end : found.start()].strip()
        if between == "":
            joined[-1] += found[1]
        elif between is not None and CPP_SUM.fullmatch(between):
            joined[-1] += HOLE + found[1]
        else:
            joined.append(found[1])
        end = found.end()
    return [unescaped(each) for each in joined]


def sentence_of_format(text):
    """A format of fmt, with its values as holes."""
    text = text.replace("{{", "\1").replace("}}", "\2")
    return re.sub(r"\{[^{}]*\}", HOLE, text).replace("\1", "{").replace("\2", "}")


def cpp_calls():
    """(path, its text, the match, sentence) of each call that refuses."""
    for path in cpp_files("compiler", "runtime", "server", "client/cpp", "client/cli"):
        text = path.read_text()
        for found in CPP_CALLS.finditer(text):
            arguments = text[found.end() : closing(text, found.end())]
            sentences = [each for each in literals(arguments) if " " in each]
            if sentences:
                yield path, text, found, sentence_of_format(max(sentences, key=len))


@functools.cache
def cpp_sites():
    """(place, sentence) of each of them."""
    return [
        (f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}", sentence)
        for path, text, found, sentence in cpp_calls()
    ]


def python_text(node):
    """The text of an expression, with values as holes; None for what is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else HOLE for v in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = python_text(node.left), python_text(node.right)
        return None if left is None and right is None else (left or HOLE) + (right or HOLE)
    return None


def python_sites():
    for path in sorted((ROOT / "client/python/kiln").rglob("*.py")):
        if path.name.endswith(("_pb2.py", "_tables.py")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name not in PYTHON_CALLS:
                continue
            sentences = [text for text in map(python_text, node.args) if text and " " in text]
            if sentences:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", max(sentences, key=len)


def tested_texts():
    """Every text that stands in a test."""
    for path in cpp_files("tests"):
        yield from literals(path.read_text())
    for path in sorted((ROOT / "tests").rglob("*.py")):
        inside = set()
        for node in ast.walk(ast.parse(path.read_text())):
            text = python_text(node) if id(node) not in inside else None
            if text is not None:
                inside.update(map(id, ast.walk(node)))
                yield text.replace("{{", "{").replace("}}", "}")  # as the catalogue formats it


def letters(sentence):
    return sum(map(str.isalpha, sentence))


def is_tested(sentence, texts):
    """Whether a line of the texts has the sentence. Its longest part tells where that is worth a look."""
    parts = sentence.split(HOLE)
    rare = max(parts, key=len)
    pattern = re.compile(".*".join(map(re.escape, parts)))
    at = texts.find(rare)
    while at >= 0:
        begin, end = texts.rfind("\n", 0, at) + 1, texts.find("\n", at)
        end = len(texts) if end < 0 else end
        if pattern.search(texts, begin, end):
            return True
        at = texts.find(rare, end)
    return False


def accepted():
    """(file, words of the sentence, reason) of each place that may stay without a test."""
    for line in ACCEPTED.read_text().splitlines():
        if line and not line.startswith("#"):
            file, words, reason = line.split(" | ")
            yield file, words.replace("{}", HOLE), reason


def is_accepted(place, sentence, entries):
    return any(place.startswith(f"{file}:") and words in sentence for file, words, _ in entries)


def untested():
    """(place, sentence) of each place whose sentence no test has."""
    texts = "\n".join(text.replace("\n", " ") for text in tested_texts())
    for place, sentence in [*cpp_sites(), *python_sites()]:
        if letters(sentence) < FEWEST_LETTERS:
            continue  # made of values alone: the caller's sentence
        if not is_tested(sentence.replace("\n", " "), texts):
            yield place, sentence


def unreached():
    """Those that have no reason to have none, either."""
    entries = list(accepted())
    for place, sentence in untested():
        if not is_accepted(place, sentence, entries):
            yield place, sentence.replace(HOLE, "{}")


def main():
    found = list(unreached())
    for place, sentence in found:
        print(f"{place}: {sentence}")
    print(f"{len(found)} sentences have no test")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
