"""Graphs in text form, read: what onnx_graph.py, jax_graph.py and torch_graph.py make their own of.

  graph = graph_text.read("bench/graphs/softmax_12x128x128.qir")
  for node in graph.nodes: node.op, node.operands, node.attributes, node.results
"""

import dataclasses
import re

HEADER = re.compile(r"graph (\w+)((?: sym \w+ in \d+\.\.\d+)(?:, \w+ in \d+\.\.\d+)*)? \{")
NODE = re.compile(r'  %(\d+)(?::\d+)? = (\w+)\((.*?)\)(?: hex ([0-9a-f]*))?(?: \{(.*?)\})? : (.*?)(?:  @".*")?$')
ATTRIBUTE = re.compile(r'(\w+) = (\[.*?\]|<.*?>|".*?"|[^,]+)')
TYPE = re.compile(r"(\w+)\[(.*?)\]")


@dataclasses.dataclass
class Type:
    dtype: str
    shape: list


@dataclasses.dataclass
class Node:
    op: str
    operands: list  # (node, result)
    attributes: dict
    results: list  # of Type
    literal: bytes = b""


@dataclasses.dataclass
class Graph:
    name: str
    nodes: list
    outputs: list  # (node, result)

    def leaves(self, op):
        return [node for node in self.nodes if node.op == op]


class Reader:
    def __init__(self, text, sizes):
        self.sizes = {}
        for name, size in re.findall(r"(\w+)=(\d+)", " ".join(re.findall(r"^# sizes: (.*)$", text, re.M))):
            self.sizes[name] = int(size)
        self.sizes.update(sizes)
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        header = HEADER.fullmatch(lines[0])
        if header is None or lines[-1] != "}" or not lines[-2].startswith("  return "):
            raise ValueError(f"not a graph without bodies: {lines[0]}")
        self.graph = Graph(header[1], [self.node(i, line) for i, line in enumerate(lines[1:-2])], [])
        self.graph.outputs = self.places(lines[-2][len("  return "):])

    def extent(self, word):
        return int(word) if word.lstrip("-").isdigit() else self.sizes[word]

    def extents(self, text):
        return [self.extent(word.strip()) for word in text.split(",")] if text.strip() else []

    def places(self, text):
        return [(int(node), int(result or 0)) for node, result in re.findall(r"%(\d+)(?:\.(\d+))?", text)]

    def value(self, word):
        if word[0] in "[<":
            return self.extents(word[1:-1])
        if word[0] == '"':
            return word[1:-1]
        if word in ("true", "false"):
            return word == "true"
        for kind in (int, float):
            try:
                return kind(word)
            except ValueError:
                continue
        return word  # a dtype

    def node(self, at, line):
        match = NODE.fullmatch(line)
        if match is None or int(match[1]) != at:
            raise ValueError(f"not understood: {line}")
        attributes = {name: self.value(word.strip()) for name, word in ATTRIBUTE.findall(match[5] or "")}
        results = [Type(dtype, self.extents(dims)) for dtype, dims in TYPE.findall(match[6])]
        return Node(match[2], self.places(match[3]), attributes, results, bytes.fromhex(match[4] or ""))


def read(path, sizes=()):
    """The graph of a file, its symbols as the file says or as `sizes` has them."""
    with open(path, encoding="utf-8") as file:
        return Reader(file.read(), dict(sizes)).graph


def heads_first(attributes, shape, heads):
    """Of an operand of Attention: the shape with heads and D apart, and the turn of that to [batch, heads, S, D]."""
    layout = attributes.get("layout", "packed")
    if layout == "bhsd":
        return shape, [0, 1, 2, 3]
    return [shape[0], shape[1], heads, attributes["head_dim"]], [0, 2, 1, 3]


def window(attributes, dims):
    """Strides, pads, dilations and groups of a convolution or pool over so many dimensions, with the defaults."""
    return (attributes.get("strides") or [1] * dims, attributes.get("pads") or [0] * (2 * dims),
            attributes.get("dilations") or [1] * dims, attributes.get("groups", 1))
