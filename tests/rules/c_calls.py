#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the public calls of C++ with those of C: tests/capi/calls names, for each C++ call, the C calls that do the same.

A line is `Class::call(parameters) = wherry_call...`, or ends with `- reason` where C needs none; option fields are
`Struct.field = wherry_struct.field`. Each public C++ call and field must have its line, and each C call must stand in one. A
call of one side that the other lacks is therefore an error. Copy and move, destructors and operators are left out.
Before it looks at the tree, the check must find what is planted in scratch trees.
"""

import re

import source_tree

TABLE = "tests/capi/calls"
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r"\b(?P<kind>namespace|class|struct|enum(?: class)?|concept)\s+(?P<name>[\w:]+)")
ACCESS = re.compile(r"^(public|protected|private):\s*")
TEMPLATE = re.compile(r"^template\s*<(?:[^<>]|<[^<>]*>)*>\s*(?:requires\s*\((?:[^()]|\([^()]*\))*\)\s*)?")
FIELD = re.compile(r"^(?!using|friend|static|return|typedef)[\w:<>, ]+[\s>](?P<name>[a-z]\w*)\s*(?:=.*|\{.*)?$", re.DOTALL)
PUBLIC = ("wherry", "wherry::files")  # docs/versions.md: names in other namespaces are the library's own
C_CALL = re.compile(r"\b(wherry_[a-z_]+)\(")
C_STRUCT = re.compile(r"struct (wherry_\w+) \{(.*?)\n\}", re.DOTALL)
C_FIELD = re.compile(r"(\w+)(?:\[\w+\])?;")
# The header's version is a macro of both, and a program of `wherry run --files` chooses a path by the C call alone.
CPP_HAS_NONE = {"wherry_version", "wherry_fd_set_path"}
LINE = re.compile(r"^(?P<call>\w[^=]*?) = (?P<same>wherry_\S+(?: wherry_\S+)*)$|^(?P<alone>\w[^=]*?) - (?P<reason>\S.*)$")


def statements(text):
    """The heads of a scope's statements, each with what stands in its braces, or None."""
    start = at = depth = 0
    while at < len(text):
        letter = text[at]
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and letter in ";{":
            head, body = text[start:at].strip(), None
            if letter == "{":
                opened, begin = 1, at + 1
                while opened:
                    at += 1
                    opened += (text[at] == "{") - (text[at] == "}")
                body = text[begin:at]
            yield " ".join(head.split()), body
            start = at + 1
        at += 1


def split(parameters):
    """At the commas that stand in no brackets."""
    parts, depth = [""], 0
    for letter in parameters:
        depth += (letter in "<({") - (letter in ">)}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def types(parameters):
    """Without names and defaults: a call that a program writes is told from others by these."""
    found = []
    for parameter in split(parameters):
        parameter = re.sub(r"\s*=.*", "", parameter)
        found.append(re.sub(r"(?<=[\w>&*])( |(?<=[&*]))(?!const\b|int\b)[a-z]\w*$", "", parameter).strip())
    return ", ".join(found)


def is_special(name, owner, parameters):
    """Destructors, copying and moving, and what the library makes from its own parts."""
    if name.startswith("~"):
        return True
    return name == owner and re.fullmatch(rf"(const )?{owner} ?&&?|std::unique_ptr<Impl>|window::Space&", parameters) is not None


def call_of(head, owner):
    """`name(parameters)`; None: a special member, an operator, or no call."""
    head = TEMPLATE.sub("", head)
    if "(" not in head or head.endswith("= delete"):
        return None
    opened = head.index("(")
    depth = 0
    for at in range(opened, len(head)):
        depth += (head[at] == "(") - (head[at] == ")")
        if depth == 0:
            break
    name, parameters = head[:opened].split()[-1].lstrip("*&"), types(head[opened + 1 : at])
    return None if is_special(name, owner, parameters) else f"{name}({parameters})"


def calls_of(text, scope=(), public=True, kind="namespace"):
    """The public calls, and the fields of structs, that a scope declares."""
    where = "::".join(name.removeprefix("wherry").lstrip(":") for name in scope)
    where = where.strip(":") + ("::" if where.strip(":") else "")
    for head, body in statements(text):
        while label := ACCESS.match(head):
            public = label[1] == "public"
            head = head[label.end():]
        if not public or "operator" in head or head.startswith(("friend", "using", "static_assert")):
            continue
        opened = SCOPE.search(head)
        if opened and "(" not in TEMPLATE.sub("", head):
            layer = opened["kind"] == "namespace" and opened["name"] not in PUBLIC
            if body is not None and opened["kind"] in ("namespace", "class", "struct") and not layer:
                yield from calls_of(body, (*scope, opened["name"]), opened["kind"] != "class", opened["kind"])
        elif call := call_of(head, scope[-1] if scope else ""):
            yield where + call
        elif kind == "struct" and (field := FIELD.match(head)):
            yield f"{where.removesuffix('::')}.{field['name']}"


def cpp_calls(root):
    found = set()
    for path in sorted((root / "include/wherry").glob("*.hpp")):
        found.update(calls_of(COMMENT.sub("", path.read_text())))
    return found


def c_calls(root):
    """Functions, and fields of structs that are no handle."""
    calls, fields = set(), set()
    for path in sorted((root / "include/wherry").glob("*.h")):
        text = COMMENT.sub("", path.read_text())
        calls.update(set(C_CALL.findall(text)) - CPP_HAS_NONE)
        for name, body in C_STRUCT.findall(text):
            fields.update(f"{name}.{field}" for field in C_FIELD.findall(body) if field not in ("impl", "reserved"))
    return calls, fields


def read_table(root):
    table, errors = {}, []
    for number, text in enumerate((root / TABLE).read_text().splitlines(), 1):
        if not text or text.startswith("#"):
            continue
        line = LINE.match(text)
        if not line:
            errors.append(f"{TABLE}:{number}: `C++ call = C call...`, or `C++ call - reason`")
        elif (call := line["call"] or line["alone"]) in table:
            errors.append(f"{TABLE}:{number}: {call} has a line already")
        else:
            table[call] = line["same"].split() if line["same"] else []
    return table, errors


def check(root):
    table, errors = read_table(root)
    cpp, (calls, fields) = cpp_calls(root), c_calls(root)
    named = {name for same in table.values() for name in same}
    errors += [f"{TABLE}: no line for the C++ call {call}: add its C call to include/wherry, or say why C needs none"
               for call in sorted(cpp - table.keys())]
    errors += [f"{TABLE}: there is no C++ call {call} in include/wherry" for call in sorted(table.keys() - cpp)]
    errors += [f"{TABLE}: there is no {name} in include/wherry/*.h" for name in sorted(named - calls - fields)]
    errors += [f"{TABLE}: {name} stands in no line: which C++ call is the same?" for name in sorted(calls - named)]
    return errors


CPP = """namespace wherry {
struct Options { std::size_t bytes = 0; bool fast = false; };
class Stream {
 public:
  class Impl;
  Stream() noexcept;
  Stream(Stream&&) noexcept;
  ~Stream();
  Result send(std::span<const std::byte> bytes, Timeout timeout = {}) noexcept { return {}; }
  template <Memory T, std::integral Size>
  [[nodiscard]] Result send(const T* data, Size bytes) noexcept { return send(f(data, bytes)); }
  int descriptor() const;
 private:
  int secret();
};
Stream listen(std::string_view address, Options options = {});
}"""
LINES = """Options.bytes = wherry_options.bytes
Options.fast - no
Stream::Stream() - none
Stream::send(std::span<const std::byte>, Timeout) = wherry_send
Stream::send(const T*, Size) = wherry_send
Stream::descriptor() = wherry_descriptor
listen(std::string_view, Options) = wherry_listen"""
C = """struct wherry_options {
  size_t bytes; /* wherry_no_call( */
};
int wherry_send(int);
int wherry_descriptor(int);
int wherry_listen(int);"""


def self_test():
    """Calls that one side lacks, lines of calls that are gone and fields are found; sides that agree are not."""
    for cpp, c, lines, wrong in (
            (CPP, C, LINES, []),
            (CPP.replace("int descriptor() const;", "int descriptor() const; void close();"), C, LINES, ["Stream::close()"]),
            (CPP.replace("Timeout timeout", "int timeout"), C, LINES, ["std::byte>, int)", "std::byte>, Timeout)"]),
            (CPP.replace("bool fast = false;", "bool fast = false; int more = 0;"), C, LINES, ["Options.more"]),
            (CPP, C + "\nint wherry_more(int);", LINES, ["wherry_more"]),
            (CPP, C.replace("int wherry_listen(int);", ""), LINES, ["wherry_listen"]),
            (CPP, C.replace("size_t bytes;", ""), LINES, ["wherry_options.bytes"]),
            (CPP, C, LINES + "\nStream::gone() - gone\nnonsense", ["nonsense", "Stream::gone()"])):
        with source_tree.planted({"include/wherry/a.hpp": cpp, "include/wherry/a.h": c, TABLE: lines}) as root:
            errors = check(root)
        assert len(errors) == len(wrong) and (wrong == ["nonsense", "Stream::gone()"] or all(
            word in error for word, error in zip(wrong, errors))), (wrong, errors)


if __name__ == "__main__":
    source_tree.run(self_test, check, "C has all calls of C++")
