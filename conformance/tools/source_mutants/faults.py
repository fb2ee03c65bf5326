"""Single faults in C sources: where they can be put, and the source with one of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter_c
from tree_sitter import Language, Node, Parser

_PARSER = Parser(Language(tree_sitter_c.language()))

_COMPARISONS = {"<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",), "!=": ("==",)}
_ARITHMETIC = {
    "+": ("-",), "-": ("+",), "*": ("+",), "/": ("*",), "%": ("/",), "<<": (">>",), ">>": ("<<",), "&": ("|",),
    "|": ("&",), "^": ("|",), "&&": ("||",), "||": ("&&",), "+=": ("-=", "="), "-=": ("+=", "="), "*=": ("+=", "="),
    "/=": ("*=",), "|=": ("&=", "="), "&=": ("|=", "="), "^=": ("|=",), "<<=": (">>=",), ">>=": ("<<=",), "++": ("--",),
    "--": ("++",),
}  # fmt: skip
_CONDITIONED = {"if_statement", "while_statement", "do_statement", "for_statement", "conditional_expression"}
_DELETED = {"expression_statement", "break_statement", "continue_statement"}
_VALUES = {"number_literal", "identifier", "parenthesized_expression", "binary_expression", "conditional_expression"}
_INTEGER = re.compile(rb"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)$")


@dataclass(frozen=True)
class Fault:
    """`before` at bytes [start, end) of a file becomes `after`.

    line counts from 1; text: the line as it is, without spaces around it; column: where in it the fault begins, from 0.
    """

    kind: str
    start: int
    end: int
    before: str
    after: str
    line: int
    text: str
    column: int = 0

    def describe(self) -> str:
        """Returns one line: what becomes what."""
        shorter = [re.sub(r"\s*\\?\n\s*", " ", s) for s in (self.before, self.after)]
        return f"{self.kind}: {shorter[0]!r} -> {shorter[1].strip()!r}"


def find_faults(source: bytes) -> list[Fault]:
    """Returns all faults that can be put into a source, in its order."""
    found = list(_in_tree(source, _PARSER.parse(source).root_node, 0))
    return sorted(found, key=lambda f: (f.start, f.end, f.kind, f.after))


def apply_fault(source: bytes, fault: Fault) -> bytes:
    """Returns the source with a fault in it; what was there must be what the fault was made for."""
    assert source[fault.start : fault.end] == fault.before.encode()
    return source[: fault.start] + fault.after.encode() + source[fault.end :]


def _in_tree(source: bytes, root: Node, base: int) -> Iterator[Fault]:
    """Faults below a node of a text that begins at `base` of the source."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "preproc_arg":
            yield from _in_macro(source, base + node.start_byte, base + node.end_byte)
            continue
        if node.type in ("preproc_include", "static_assert_declaration"):
            continue
        if not base and node.type == "expression_statement" and node.parent == root:
            continue  # a macro that declares something; faults there do not compile
        yield from _at(source, node, base)
        skipped = node.child_by_field_name("condition") if node.type in ("preproc_if", "preproc_elif") else None
        stack += [c for c in node.children if c != skipped]


def _in_macro(source: bytes, start: int, end: int) -> Iterator[Fault]:
    """Faults in the body of a macro, which is parsed by itself, at the same byte offsets."""
    body = source[start:end].replace(b"\\\n", b" \n").replace(b"##", b"__").replace(b"#", b" ")
    yield from _in_tree(source, _PARSER.parse(body).root_node, start)


def _at(source: bytes, node: Node, base: int) -> Iterator[Fault]:
    start, end = base + node.start_byte, base + node.end_byte

    def fault(kind: str, begin: int, stop: int, after: str) -> Fault:
        line, line_start = source.count(b"\n", 0, begin), source.rfind(b"\n", 0, begin) + 1
        whole = source[line_start:].split(b"\n", 1)[0]
        column = begin - line_start - (len(whole) - len(whole.lstrip()))
        text = whole.decode().strip().rstrip("\\").strip()
        return Fault(kind, begin, stop, source[begin:stop].decode(), after, line + 1, text, column)

    operator = node.child_by_field_name("operator")
    if operator is not None and node.type in ("binary_expression", "assignment_expression", "update_expression"):
        operation = operator.type
        for table, kind in ((_COMPARISONS, "comparison"), (_ARITHMETIC, "arithmetic")):
            for other in table.get(operation, ()):
                yield fault(kind, base + operator.start_byte, base + operator.end_byte, other)
    if node.type == "number_literal":
        for other in _other_numbers(source[start:end]):
            yield fault("constant", start, end, other)
    if node.type in _DELETED and end - start > 1 and not _is_value(node):
        yield fault("deletion", start, end, _blank(source[start:end]) + ";")
    if node.type == "argument_list":
        arguments = [c for c in node.children if c.is_named and c.type != "comment"]
        for a, b in itertools.pairwise(arguments):
            begin, stop = base + a.start_byte, base + b.end_byte
            texts = [source[base + x.start_byte : base + x.end_byte] for x in (a, b)]
            if texts[0] != texts[1]:
                between = source[base + a.end_byte : base + b.start_byte]
                yield fault("swap", begin, stop, (texts[1] + between + texts[0]).decode())
    condition = node.child_by_field_name("condition") if node.type in _CONDITIONED else None
    if condition is not None and condition.type != "binary_expression":
        begin, stop = base + condition.start_byte, base + condition.end_byte
        yield fault("condition", begin, stop, _negated(source[begin:stop]))


def _is_value(node: Node) -> bool:
    """Returns whether it is the body of a macro that stands for a value: without it, nothing compiles."""
    return (node.text or b"")[-1:] != b";" and any(c.type in _VALUES for c in node.children)


def _negated(condition: bytes) -> str:
    text = condition.decode()
    return f"(!{text})" if text.startswith("(") else f"!({text})"


def _blank(statement: bytes) -> str:
    """As long and with the same ends of lines, but empty; the last byte is left for a semicolon."""
    return re.sub(r"[^\n\\]", " ", statement.decode())[:-1] if b"\\\n" in statement else ""


def _other_numbers(literal: bytes) -> list[str]:
    integer = _INTEGER.match(literal)
    if integer:
        value, suffix = int(integer[1], 0 if integer[1][:2].lower() == b"0x" else 10), integer[2].decode()
        return [f"{n}{suffix}" for n in (value + 1, value - 1) if n >= 0]
    text = literal.decode()
    return [f"({text} + 1)", f"-{text}"] if not text.lower().startswith("0x") else []
