#!/usr/bin/env python3
"""quern bench, as a user meets it: a row for each graph and number of threads, whose times and roofline hold together.

  bench_test.py QUERN SOURCE_DIR
"""

import json
import os
import pathlib
import sys
import tempfile

from program import expect, said

QUERN, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "bench" / "peers"))
import graph_text  # noqa: E402

PRODUCT = """# sizes: N=64
graph product sym N in 1..256 {
  %0 = Input() {name = "x"} : f32[N, 96]
  %1 = Param() {name = "w"} : f32[96, 128]
  %2 = MatMul(%0, %1) : f32[N, 128]
  %3 = Softmax(%2) : f32[N, 128]
  return %3
}
"""
SUM = """graph sum {
  %0 = Input() {name = "a"} : f32[1000]
  %1 = Input() {name = "b"} : f32[1000]
  %2 = Add(%0, %1) : f32[1000]
  return %2
}
"""


def quern(folder, *options, code=0):
    environment = dict(os.environ, XDG_CACHE_HOME=str(folder / "home"), QUERN_CACHE="off")
    return said(QUERN, "bench", *options, code=code, env=environment, timeout=300)


def check_row(row, samples):
    expect(0 < row["least_ns"] <= row["first_quartile_ns"] <= row["median_ns"] <= row["third_quartile_ns"],
           f"times in disorder: {row}")
    expect(row["samples"] == samples and row["runs"] >= 1 and row["launches"] >= 1, f"what was run: {row}")
    # Each kernel takes as long as its operations or its bytes do, so the whole is between the longer of the two sums
    # and both together.
    compute, memory = row["operations"] / row["f32_gflops"], row["bytes"] / row["memory_gbps"]
    expect(max(compute, memory) * 0.999 <= row["floor_ns"] <= (compute + memory) * 1.001, f"floor: {row}")
    expect(abs(row["percent_of_floor"] - 100 * row["floor_ns"] / row["median_ns"]) < 1e-6, f"share: {row}")
    expect(row["bound"] in ("compute", "memory", "overhead") and row["memory"], f"bound: {row}")


def check_rows(folder):
    product, total, out = folder / "product.qir", folder / "total.qir", folder / "bench.json"
    product.write_text(PRODUCT)
    total.write_text(SUM)
    table = quern(folder, product, total, "--threads", "1,2", "--samples", 5, "--ms", 1, "--json", out)
    lines = table.splitlines()
    expect(len(lines) == 5, f"a line for each graph and number of threads, and one above:\n{table}")
    expect([line.split()[:2] for line in lines[1:]] == [[name, threads] for name in ("product", "total")
                                                        for threads in ("1", "2")], table)
    data = json.loads(out.read_text())
    expect(data["schema"] == "quern.bench" and data["version"] == 1, "schema")
    rows = data["graphs"]
    expect([(row["graph"], row["threads"]) for row in rows] == [("product", 1), ("product", 2), ("total", 1),
                                                               ("total", 2)], f"rows: {rows}")
    for row in rows:
        check_row(row, 5)
    flops = 2 * 64 * 96 * 128
    for row in rows[:2]:
        expect(flops <= row["operations"] < 1.5 * flops, f"operations of the product: {row['operations']}")
        expect(row["bytes"] >= 4 * (64 * 96 + 96 * 128 + 64 * 128), f"bytes of the product: {row['bytes']}")
    for row in rows[2:]:
        expect(row["operations"] == 1000 and row["bytes"] == 12000 and row["launches"] == 1, f"a sum: {row}")
    # A size given in place of the file's.
    quern(folder, product, "--size", "N=128", "--threads", 1, "--samples", 3, "--ms", 0, "--json", out)
    row, = json.loads(out.read_text())["graphs"]
    check_row(row, 3)
    expect(2 * flops <= row["operations"] < 3 * flops, f"operations of twice as many rows: {row['operations']}")
    return product


def check_errors(folder, product):
    expect("SYMBOL=NUMBER" in quern(folder, product, "--size", "N", code=1), "a size that is none")
    expect("there is no symbol M" in quern(folder, product, "--size", "M=3", code=1), "a symbol there is not")
    expect("--threads" in quern(folder, product, "--threads", "1,-2", code=2), "threads below 0")
    before = product.read_text()
    quern(folder, product, "--json", product, code=1)
    expect(product.read_text() == before, "the figures were written over the graph")
    broken = folder / "broken.qir"
    broken.write_text(SUM.replace("Add", "Ad"))
    expect("broken.qir" in quern(folder, product, broken, code=1), "an op there is not")


def check_models(folder, product):
    """A language model beside a graph: tokens a second, of a prompt and decoded."""
    model, out = SOURCE / "models" / "addition.gguf", folder / "models.json"
    table = quern(folder, product, model, "--threads", "1,2", "--samples", 3, "--ms", 1, "-p", 13, "-n", 7,
                  "--json", out)
    rows = [line.split() for line in table.splitlines()]
    expect([row[0] for row in rows] == ["graph", "product", "product", "model", "addition", "addition"], table)
    data = json.loads(out.read_text())
    expect(len(data["graphs"]) == 2 and [row["threads"] for row in data["models"]] == [1, 2], f"rows: {data}")
    for row, cells in zip(data["models"], rows[4:]):
        expect((row["prompt_tokens"], row["decoded_tokens"], row["samples"]) == (13, 7, 3), f"what was run: {row}")
        expect(0 < row["prompt_least_ns"] <= row["prompt_median_ns"], f"times in disorder: {row}")
        expect(0 < row["token_least_ns"] <= row["token_median_ns"], f"times in disorder: {row}")
        expect(cells[1] == str(row["threads"]) and cells[4] == f"{13e9 / row['prompt_median_ns']:.1f}", table)
    expect("GGUF" in quern(folder, SOURCE / "README.md", code=1), "no model")


def check_graphs(folder):
    """Those of bench/graphs run, each under its own name."""
    here = SOURCE / "bench" / "graphs"
    blocks = sorted((here / "recurrences").glob("*.qir"))
    files = sorted(here.glob("*.qir")) + blocks
    lines = quern(folder, *files, "--samples", 1, "--ms", 0).splitlines()
    expect([line.split()[0] for line in lines[1:]] == [file.stem for file in files] and blocks,
           "graphs of bench/graphs")
    for file in set(files) - set(blocks):
        # As bench/peers reads it, for other systems.
        expect(graph_text.read(file).name == file.stem, f"{file} has another name inside")


with tempfile.TemporaryDirectory() as name:
    where = pathlib.Path(name)
    product_file = check_rows(where)
    check_errors(where, product_file)
    check_models(where, product_file)
    check_graphs(where)
print("graphs timed on one thread and on two, errors named")
