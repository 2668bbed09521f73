#!/usr/bin/env python3
"""Writes the graphs of many elementwise ops beside this file.

chainN_E: N ops in a row over E elements; heavyN_E: all of them transcendental. dagN_E: about N ops, most of which read
any two of those before, so that about as many values wait for a reader as there are ops. randN_E with E = 64K is
rand1000_1024.qir over more elements.
"""
import pathlib
import random

FOLDER = pathlib.Path(__file__).parent
SIZE = 1 << 16
TWO = ["Add", "Mul", "Sub", "Max", "Min"]


class Graph:
    def __init__(self, name, inputs):
        self.name = name
        self.nodes = [f'Input() {{name = "x{i}"}}' for i in range(inputs)]

    def add(self, op, *operands):
        self.nodes.append(f"{op}({', '.join(f'%{o}' for o in operands)})")
        return len(self.nodes) - 1

    def write(self, result):
        lines = [f"  %{i} = {node} : f32[{SIZE}]" for i, node in enumerate(self.nodes)]
        text = "\n".join([f"graph {self.name} {{", *lines, f"  return %{result}", "}", ""])
        (FOLDER / f"{self.name}.qir").write_text(text, encoding="utf-8")


def chain(name, count, ops):
    graph = Graph(name, 1)
    last = 0
    for i in range(count):
        op = ops[i % len(ops)]
        last = graph.add(op, last, 0) if op in TWO else graph.add(op, last)
    graph.write(last)


def dag(name, count, seed):
    most_unused = 38
    rand = random.Random(seed)
    graph = Graph(name, 4)
    unused = set(range(4))

    def add(op, *operands):
        unused.difference_update(operands)
        unused.add(graph.add(op, *operands))

    while len(graph.nodes) < count - most_unused:
        anything = rand.randrange(len(graph.nodes)), rand.randrange(len(graph.nodes))
        if len(unused) >= most_unused or (len(unused) > 1 and rand.random() < 0.3):
            add(rand.choice(["Sub", "Max", "Min"]), *rand.sample(sorted(unused), 2))
        elif rand.random() < 0.35:
            add(rand.choice(["Tanh", "Sigmoid", "Sin", "Abs", "Neg"]), anything[0])
        else:
            add(rand.choice(TWO), *anything)
    while len(unused) > 1:
        add("Max", *sorted(unused)[:2])
    graph.write(graph.add("Tanh", unused.pop()))


def main():
    chain("chain100_64K", 100, ["Tanh", "Mul", "Sigmoid", "Sub", "Sin", "Add", "Abs"])
    chain("heavy100_64K", 100, ["Tanh", "Sin", "Sigmoid", "Erf"])
    dag("dag1000_64K", 1000, 7)
    text = (FOLDER / "rand1000_1024.qir").read_text(encoding="utf-8")
    text = text.replace("rand1000_1024", "rand1000_64K").replace("[1024]", f"[{SIZE}]")
    (FOLDER / "rand1000_64K.qir").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
