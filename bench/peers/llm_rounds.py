"""Language models in Quern and in other programs, in turns: a line of JSON a run, for scripts/bench_table.py.

    llm_rounds.py build/bin/bench_llm MODEL.gguf... -o rounds.jsonl --threads 1,2 --rounds 3 \\
        --peer 'llama.cpp-fa1=llama_bench LIBS bench {model} --threads {threads} --pp 512 --tg 32 --depth 128 --fa 1' \\
        --peer 'ik-fa1-rtr1=ik_bench {model} --threads {threads} --fa 1 --rtr 1 --np {sequences}'

A peer is a name and a command that prints a line of JSON with pp512_tps, tg_tps or, of several texts at once,
batch_tps; scripts/bench_table.py takes the best of those whose names begin alike. With --sequences as many texts are
decoded together, a token of each in a step. With one thread a program stays on one core.
"""
import argparse
import json
import os
import shlex
import subprocess

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("bench_llm")
arguments.add_argument("models", nargs="+")
arguments.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
arguments.add_argument("--threads", default="1")
arguments.add_argument("--sequences", type=int, default=0)
arguments.add_argument("--rounds", type=int, default=3)
arguments.add_argument("--flags", default="--reps 2", help="of bench_llm besides")
arguments.add_argument("-o", "--output", required=True)
options = arguments.parse_args()

own = f"{options.bench_llm} {{model}} --threads {{threads}} {options.flags}"
if options.sequences:
    own += " --sequences {sequences}"
programs = [("quern", own), *(peer.split("=", 1) for peer in options.peer)]

with open(options.output, "a") as output:
    for _ in range(options.rounds):
        for model in options.models:
            for threads in options.threads.split(","):
                for name, command in programs:
                    command = command.format(model=shlex.quote(model), threads=threads, sequences=options.sequences)
                    pin = ["taskset", "-c", "1"] if threads == "1" else []
                    run = subprocess.run(pin + shlex.split(command), capture_output=True, text=True)
                    lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
                    if run.returncode or not lines:
                        print(f"{name} {model}: ended with {run.returncode}: {run.stderr[-200:]}")
                        continue
                    row = {**json.loads(lines[-1]), "engine": name, "model": os.path.basename(model),
                           "threads": int(threads), "sequences": options.sequences}
                    output.write(json.dumps(row) + "\n")
                    output.flush()
                    print(name, row["model"], threads, *(f"{key} {row[key]}" for key in
                                                         ("pp512_tps", "tg_tps", "batch_tps") if row.get(key)))
