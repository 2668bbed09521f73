#!/usr/bin/env python3
"""How many of N processes are slow because their threads share a core: quern bench, one process after the other.

  scripts/slow_processes.py build/bin/quern bench/graphs/gemm_1024x1024x1024.qir [--processes 20] [--threads 2]

Runs them on a machine that is otherwise quiet, then beside as many busy processes as --load says. Prints the least, the
median and the greatest time of a run, and how many processes took 1.5 times the fastest or longer; of each of these,
how many processors the rest of the machine kept busy meanwhile, for that makes processes slow as well. Nothing is
judged.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

SLOW = 1.5


def seconds_busy():
    """Of all processors together, since the machine started."""
    user, nice, system, _, _, interrupts, soft = (int(word) for word in open("/proc/stat").readline().split()[1:8])
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


def run(arguments):
    """(microseconds of a run, the median of a process of its own; processors that others kept busy meanwhile)."""
    began, busy, own = time.monotonic(), seconds_busy(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(
            [arguments.quern, "bench", arguments.graph, "--threads", str(arguments.threads), "--samples",
             str(arguments.samples), "--ms", str(arguments.ms), "--json", file.name],
            check=True, stdout=subprocess.DEVNULL)
        median = json.load(open(file.name))["graphs"][0]["median_ns"] / 1000
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = now.ru_utime + now.ru_stime - own.ru_utime - own.ru_stime
    return median, max(0, seconds_busy() - busy - own) / (time.monotonic() - began)


def round_of(arguments, load):
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
    try:
        runs = [run(arguments) for _ in range(arguments.processes)]
    finally:
        for process in busy:
            process.kill()
            process.wait()
    times = [median for median, _ in runs]
    slow = [f"{median:.0f} us ({others:.1f} busy)" for median, others in runs if median > SLOW * min(times)]
    print(f"{load} busy beside: {min(times):.0f} to {max(times):.0f} us, median {statistics.median(times):.0f}; "
          f"{len(slow)} of {len(times)} above {SLOW} times the fastest", *slow, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("quern")
    parser.add_argument("graph")
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--samples", type=int, default=9)
    parser.add_argument("--ms", type=float, default=10)
    parser.add_argument("--load", type=int, nargs="*", default=[0, 1])
    arguments = parser.parse_args()
    for load in arguments.load:
        round_of(arguments, load)


main()
