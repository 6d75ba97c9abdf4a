#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no class of ours declares more than 40 functions: a class to hold in one's head has about 30.

Counted are the functions that the body of a class declares, overloads and operators too, without those that are defaulted or
deleted. Public headers are left out: their classes are an interface, not a part. Before it looks at the tree, the check must
find classes planted in a scratch tree.
"""

import re

import source_tree

MOST = 40
FOLDERS = ("src", "adapters", "tools", "bench", "manual", "bindings")
# Classes that were larger when the rule came, with what each may have. A number only goes down.
LARGER = {"src/file/client/host.hpp:Host": 45}
# Comments, strings and characters, which may hold braces.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<end>[^\s()\\]{0,16})\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\[^\'\n]+|[^\'\\\n])\'',
    re.DOTALL,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
CLASS = re.compile(r"\b(?:class|struct)\s+(?:\w+\s+)??((?:\w+::)*\w+)(?:\s+final)?\s*(?::[^;{}()]*(?:\([^;{}()]*\)[^;{}()]*)?)?\{")
FUNCTION = re.compile(r"(?:\b\w+|\boperator\s*(?:\(\s*\)|[^\s\w(]+|\w+))\s*\(")
NO_FUNCTION = re.compile(r"^\s*(?:using|typedef|friend|static_assert|enum|class|struct|union)\b|=\s*(?:default|delete)\s*$")


def closing(text, opening):
    """The place behind the brace that closes the one at `opening`."""
    depth = 0
    for place in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return len(text)


def members(body):
    """The declarations of a class, each without what stands in braces."""
    place, begin, parts = 0, 0, []
    while place < len(body):
        if body[place] == "{":
            parts.append(body[begin:place])
            place = begin = closing(body, place)
            # The end of a function's body is the end of its declaration; that of an initialiser is not.
            text = "".join(parts)
            if FUNCTION.search(text.split("=")[0]) and not body[place:].lstrip().startswith((";", ",")):
                yield text
                parts = []
        elif body[place] == ";":
            yield "".join([*parts, body[begin:place]])
            parts = []
            place = begin = place + 1
        else:
            place += 1


def is_function(declaration):
    declaration = re.sub(r"\b(?:public|private|protected)\s*:(?!:)", " ", declaration)
    declaration = re.sub(r"\[\[.*?\]\]|\b(?:alignas|explicit|noexcept|decltype|requires)\s*\([^()]*\)", " ", declaration)
    if NO_FUNCTION.search(declaration.strip()):
        return False
    found = FUNCTION.search(declaration)
    # A field of a function's type, or with an initialiser that calls one.
    return found is not None and "=" not in declaration[: found.start()].replace("operator=", "") and "std::function<" not in declaration[: found.end()]


def classes(text):
    """Yields (name, how many functions it declares)."""
    text = DIRECTIVE.sub(" ", NO_CODE.sub(" ", text))
    for match in CLASS.finditer(text):
        body = text[match.end() : closing(text, match.end() - 1) - 1]
        yield match[1], sum(map(is_function, members(body)))


def check(root):
    errors, seen = [], set()
    for path in source_tree.sources(root):
        if path.parts[0] not in FOLDERS or source_tree.is_test(path):
            continue
        for name, count in classes((root / path).read_text()):
            key = f"{path}:{name}"
            seen.add(key)
            most = LARGER.get(key, MOST)
            if count > most:
                errors.append(f"{key}: {count} functions; {most} are allowed: split it by role")
            elif key in LARGER and count < most:
                errors.append(f"{key}: {count} functions: lower its number in {__file__}")
    return errors + [f"{key} is gone: remove it from {__file__}" for key in LARGER if root == source_tree.ROOT and key not in seen]


def body_of(count):
    return "".join(f"  int f{number}(int x = g({{1}})) const {{ if (x) {{ return 1; }} return 0; }}\n" for number in range(count))


PLANTED = {
    "src/a.hpp": "class A final : public B<int()> {\n public:\n" + body_of(MOST + 1) + "};\n",
    "src/b.cc": "struct B {\n" + body_of(MOST) + "  int x = f();\n  std::function<void()> g;\n  B(const B&) = delete;\n"
                "  // int h();\n  using F = int();\n  friend int k();\n  struct C { int c(); };\n};\n",
    "tools/c.cc": "class C {\n" + body_of(MOST) + "  bool operator()(int) const;\n};\n",
    "src/a_test.cc": "class A {\n" + body_of(MOST + 1) + "};\n",
}


def self_test():
    """Every planted class is found, and no other."""
    with source_tree.planted(PLANTED) as root:
        errors = check(root)
    assert [error.split(" ")[0] for error in errors] == ["src/a.hpp:A:", "tools/c.cc:C:"], "\n".join(errors)


if __name__ == "__main__":
    source_tree.run(self_test, check, f"no class has more than {MOST} functions, but for {len(LARGER)}")
