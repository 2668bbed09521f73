#!/usr/bin/env python3
"""Writes the tables of docs/benchmarks.md from the medians of interleaved rounds.

    scripts/bench_table.py build/bin/quern MODELS ROUNDS.json [--int8-peak GOPS] [--f32-peak GFLOPS]

ROUNDS.json: a list of objects, one a row, as bench_llm and the peer's driver print them (engine, model, threads,
pp512_tps, tg_tps, read_gbps), medians over rounds. A peer may have several rows of one model, one a setting: its best
counts, for prompts and for decoding apart. The peaks are of one thread, in 10^9 operations a second.

Floors: a decode step reads every weight but the embedding once, at the read loop's speed in the same rounds; a prompt
of 512 multiplies each weight of the layers with every token (attention is left out, so the share is a little
understated).
"""
import argparse
import collections
import json
import re
import subprocess

arguments = argparse.ArgumentParser()
arguments.add_argument("quern")
arguments.add_argument("models")
arguments.add_argument("rounds", nargs="+")
arguments.add_argument("--int8-peak", type=float, default=735)
arguments.add_argument("--f32-peak", type=float, default=187)
options = arguments.parse_args()


def tensors(model):
    """(name, elements, bytes) of every tensor, as `quern inspect` lists them."""
    text = subprocess.run([options.quern, "inspect", f"{options.models}/{model}"], check=True, capture_output=True,
                          text=True).stdout
    for name, shape, size in re.findall(r"^  (\S+\.weight)\s+\S+\s+\[([\d, ]+)\]\s+(\d+) bytes", text, re.M):
        elements = 1
        for extent in shape.split(","):
            elements *= int(extent)
        yield name, elements, int(size)


def sizes(model):
    """Bytes a decode step reads, and multiplications a token of a prompt takes."""
    rows = list(tensors(model))
    tied = not any(name == "output.weight" for name, _, _ in rows)
    step = sum(size for name, _, size in rows if tied or name != "token_embd.weight")
    layers = sum(elements for name, elements, _ in rows if name.startswith("blk.") and "norm" not in name)
    return step, layers


rows = [row for path in options.rounds for row in json.load(open(path))]
groups = collections.defaultdict(lambda: ([], []))
for row in rows:
    groups[row["model"], row["threads"]][row["engine"] != "quern"].append(row)

print("| file | threads | prompt 512, tokens/s | peer | ratio | share of the arithmetic peak "
      "| decode, tokens/s | peer | ratio | read loop, GB/s | share of it | open to first token, ms | of it compiling |")
print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
for (model, threads), (own, peers) in groups.items():
    if not own or not peers:
        continue
    q = own[0]
    prompt, decode = max(p["pp512_tps"] for p in peers), max(p["tg_tps"] for p in peers)
    step, layers = sizes(model)
    peak = (options.f32_peak if "f16" in model else options.int8_peak) * threads
    print(f"| {model.removesuffix('.gguf')} | {threads} "
          f"| {q['pp512_tps']:.0f} | {prompt:.0f} | {q['pp512_tps'] / prompt:.2f} "
          f"| {2e-9 * layers * q['pp512_tps'] / peak:.2f} "
          f"| {q['tg_tps']:.4g} | {decode:.4g} | {q['tg_tps'] / decode:.2f} "
          f"| {q['read_gbps']:.1f} | {1e-9 * step * q['tg_tps'] / q['read_gbps']:.2f} "
          f"| {q['first_token_ms']:.0f} | {q['compile_ms']:.0f} |")
