#!/usr/bin/env python3
"""Writes the table of docs/benchmarks.md from interleaved rounds of bench_llm and its peers.

    scripts/bench_table.py build/bin/quern MODELS ROUNDS.jsonl... [--int8-peak GOPS] [--f32-peak GFLOPS]

ROUNDS.jsonl: a line a run, as bench/peers/llm_rounds.py writes them (engine, model, threads, pp512_tps, tg_tps,
read_gbps; a run may lack some); medians over the rounds are compared. A peer may have several engines, one a setting,
whose names begin with its own: llama.cpp-fa0, llama.cpp-fa1, ik-fa1-rtr0. The best setting counts, for prompts and for
decoding apart. Runs of several sequences (batch_tps) make a table of their own.
The peaks are of one thread, in 10^9 operations a second.

Floors: a decode step reads every weight but the embedding once, at the read loop's speed in the same rounds; a prompt
of 512 multiplies each weight of the layers with every token (attention is left out, so the share is a little
understated).
"""
import argparse
import collections
import json
import re
import statistics
import subprocess

arguments = argparse.ArgumentParser()
arguments.add_argument("quern")
arguments.add_argument("models")
arguments.add_argument("rounds", nargs="+")
arguments.add_argument("--int8-peak", type=float, default=466)
arguments.add_argument("--f32-peak", type=float, default=116.5)
options = arguments.parse_args()


def tensors(model):
    """(name, elements, bytes) of every tensor, as `quern inspect` lists them."""
    text = subprocess.run([options.quern, "inspect", f"{options.models}/{model}"], check=True, capture_output=True,
                          text=True).stdout
    units = {"bytes": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9}
    for name, shape, size, unit in re.findall(
            r"^  (\S+\.weight)\s+\S+\s+\[([\d, ]+)\]\s+([\d.]+) (bytes|[KMG]B)", text, re.M):
        elements = 1
        for extent in shape.split(","):
            elements *= int(extent)
        yield name, elements, float(size) * units[unit]


def used_experts(model):
    """Of the experts' weights, the part that a token takes."""
    text = subprocess.run([options.quern, "inspect", f"{options.models}/{model}"], check=True, capture_output=True,
                          text=True).stdout
    counts = [re.search(rf"\.{key}\s*[=:]?\s*(\d+)", text) for key in ("expert_used_count", "expert_count")]
    return int(counts[0][1]) / int(counts[1][1]) if all(counts) else 1


def sizes(model):
    """Bytes a decode step reads, and multiplications a token of a prompt takes."""
    rows = list(tensors(model))
    part = used_experts(model)
    share = lambda name: part if "_exps" in name else 1
    tied = not any(name == "output.weight" for name, _, _ in rows)
    step = sum(size * share(name) for name, _, size in rows if tied or name != "token_embd.weight")
    layers = sum(elements * share(name) for name, elements, _ in rows if name.startswith("blk.") and "norm" not in name)
    return step, layers


PEERS = {"llama.cpp": "llama.cpp", "ik": "ik_llama.cpp"}
NUMBERS = ("pp512_tps", "tg_tps", "read_gbps", "batch_tps")

runs = [json.loads(line) for path in options.rounds for line in open(path) if line.strip()]
groups = collections.defaultdict(lambda: collections.defaultdict(list))
for run in runs:
    groups[run["model"], run["threads"], run.get("sequences", 0)][run["engine"]].append(run)


def medians(samples):
    named = {name: [run[name] for run in samples if name in run] for name in NUMBERS}
    return {name: statistics.median(values) for name, values in named.items() if values}


heads = ["file", "threads", "prompt 512, tokens/s", *PEERS.values(), "ratio", "share of the arithmetic peak",
         "decode, tokens/s", *PEERS.values(), "ratio", "read loop, GB/s", "share of it"]
print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
together = []
for (model, threads, sequences), engines in groups.items():
    speeds = {engine: medians(samples) for engine, samples in engines.items()}
    own = speeds.get("quern")
    best = {name: {peer: max((s.get(name, 0) for engine, s in speeds.items() if engine.startswith(peer)), default=0)
                   for peer in PEERS} for name in NUMBERS}
    if sequences:
        peers = [speed for speed in best["batch_tps"].values() if speed]
        if own and peers:
            together.append([model.removesuffix(".gguf"), threads, sequences, f"{own['batch_tps']:.0f}",
                             *(f"{speed:.0f}" if speed else "" for speed in best["batch_tps"].values()),
                             f"{own['batch_tps'] / max(peers):.2f}", f"{own['read_gbps']:.1f}",
                             f"{1e-9 * sizes(model)[0] * own['batch_tps'] / sequences / own['read_gbps']:.2f}"])
        continue
    if own is None or not max(best["tg_tps"].values()):
        continue
    prompt, decode = best["pp512_tps"], best["tg_tps"]
    step, layers = sizes(model)
    peak = (options.f32_peak if "f16" in model else options.int8_peak) * threads
    cells = [model.removesuffix(".gguf"), threads,
             f"{own['pp512_tps']:.0f}", *(f"{speed:.0f}" for speed in prompt.values()),
             f"{own['pp512_tps'] / max(prompt.values()):.2f}", f"{2e-9 * layers * own['pp512_tps'] / peak:.2f}",
             f"{own['tg_tps']:.4g}", *(f"{speed:.4g}" for speed in decode.values()),
             f"{own['tg_tps'] / max(decode.values()):.2f}",
             f"{own['read_gbps']:.1f}", f"{1e-9 * step * own['tg_tps'] / own['read_gbps']:.2f}"]
    print("| " + " | ".join(map(str, cells)) + " |")
if together:
    heads = ["file", "threads", "sequences", "tokens/s of all", *PEERS.values(), "ratio", "read loop, GB/s",
             "share of it"]
    print("\n| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for cells in together:
        print("| " + " | ".join(map(str, cells)) + " |")
