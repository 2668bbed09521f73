"""Writes the functions of ops and blocks, from the tables of the library: ops.py and blocks.py of the package.

    generate.py PACKAGE_DIR      which has the extension module in it
"""
import builtins
import importlib.util
import keyword
import os
import re
import sys
import textwrap

TYPES = {"bool": "bool", "int": "int", "float": "float", "string": "str", "dtype": "Any", "ints": "Sequence[int]",
         "extents": "Union[int, str, Sequence[Union[int, str]]]"}
HEAD = '''"""{doc} Made by python/generate.py from the tables of the library.

Operands are values of a graph, or numbers and arrays beside one. After the name of an operand stand its sizes, where
there is a rule: ``..`` is any number of dimensions. ``label`` names what is added in errors and profiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

from .graph import Graph
from .value import Value, apply

__all__ = {names}
'''


def snake(name):
    """MatMul: mat_mul, ReduceL1: reduce_l1, LSTM: lstm, RoPE: rope, FFTConv1d: fft_conv1d."""
    name = {"RoPE": "Rope"}.get(name, name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def identifier(name, taken=()):
    return name + "_" if keyword.iskeyword(name) or name in taken else name


def default(attribute):
    text = attribute.default_value
    if attribute.kind == "bool":
        return text.capitalize()
    if attribute.kind in ("int", "float"):
        return text if re.fullmatch(r"-?[0-9.e+-]+", text) else f'float("{text}")'
    if attribute.kind == "ints":
        return "(" + text.strip("[]") + ("," if text.strip("[]") and "," not in text else "") + ")"
    if attribute.kind == "extents":
        sizes = [s.strip() for s in text.strip("<>").split(",") if s.strip()]
        return "(" + "".join(f'{s}, ' if re.fullmatch("-?[0-9]+", s) else f'"{s}", ' for s in sizes).strip() + ")"
    return '"' + text.strip('"') + '"'


def sentence(operand):
    parts = [operand.shape, operand.kind]
    return f"{identifier(operand.name)}: " + (": ".join(p for p in parts if p) or "any dtype") + (
        ", or None" if operand.optional else "")


def function(op, block):
    names, variadic = [], None
    for at, operand in enumerate(op.operands):
        name = identifier(operand.name)
        if operand.variadic:
            variadic = identifier(re.split(r"[ ,]", operand.name)[0])
        else:  # one that may be absent has a default where all behind it have
            left_out = all(o.optional or o.variadic for o in op.operands[at:])
            names.append(f"{name}: Any = None" if left_out else f"{name}: Any")
    taken = {identifier(o.name) for o in op.operands} | {variadic}
    attributes = [(identifier(a.name, taken), a) for a in op.attributes]
    bodies = [identifier(b, taken) for b in op.bodies]
    parameters = names + ([f"*{variadic}: Any"] if variadic else ["*"])
    parameters += [f"{b}: Graph" for b in bodies]
    for name, a in attributes:
        parameters.append(f"{name}: {TYPES[a.kind]}" if a.required else f"{name}: {TYPES[a.kind]} = {default(a)}")
    if not op.operands:
        parameters.append("graph: Graph")
    parameters.append('label: str = ""')
    title = snake(op.name)
    lines = [f"def {identifier(title)}({', '.join(parameters)}) -> Any:"]
    doc = [op.doc[0].upper() + op.doc[1:] + ".", ""]
    doc += [f"    {sentence(o)}" for o in op.operands]
    for name, a in attributes:
        doc.append(f"    {name}: {a.doc}" + (" " if a.doc else "") + (f"one of {', '.join(a.choices)}"
                                                                     if a.choices else a.kind))
    doc += [f"    {b}: the graph of this body" for b in bodies]
    body = [line for text in doc for line in (textwrap.wrap(text, 108, subsequent_indent="        ") or [""])]
    body = "\n".join(f"    {line}".rstrip() for line in body).strip().replace("\\", "\\\\").replace('"""', "'''")
    lines.append(f'    """{body}\n    """')
    operands = ", ".join(identifier(o.name) for o in op.operands if not o.variadic)
    operands = f"[{operands}{', ' if operands and variadic else ''}{'*' + variadic if variadic else ''}]"
    given = ", ".join(f'"{a.name}": {name}' for name, a in attributes)
    more = f", bodies=[{', '.join(bodies)}]" if bodies else ""
    more += ", graph=graph" if not op.operands else ""
    more += ", block=True" if block else ""
    # Absent operands at the end are not given: how many an op takes tells it which form it has.
    lines.append(f'    return apply("{op.name}", _given({operands}), {{{given}}}, label{more})')
    return identifier(title), "\n".join(lines)


TAIL = '''

def _given(operands: list[Any]) -> list[Any]:
    while operands and operands[-1] is None:
        operands.pop()
    return operands
'''


def main():
    package = sys.argv[1]
    file = next(f for f in os.listdir(package) if f.startswith("_quern.") and f.endswith(".so"))
    spec = importlib.util.spec_from_file_location("_quern", os.path.join(package, file))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, table, doc, block in (("ops", module.op_table(), "Every op as a function.", False),
                                    ("blocks", module.block_table(), "Every block of a model as a function.", True)):
        functions = [function(op, block) for op in table]
        names = [f for f, _ in functions]
        if len(set(names)) != len(names):
            sys.exit(f"two {name} have one name: {sorted(n for n in names if names.count(n) > 1)}")
        listed = "[\n" + "".join(f'    "{n}",\n' for n in names) + "]"
        text = HEAD.format(doc=doc, names=listed) + TAIL + "".join(f"\n\n{f}\n" for _, f in functions)
        compile(text, name + ".py", "exec")
        with builtins.open(os.path.join(package, name + ".py"), "w", encoding="utf-8") as f:
            f.write(text)


main()
