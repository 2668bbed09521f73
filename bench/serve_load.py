"""How fast a server answers several clients at once: one JSON object on standard output.

    serve_load.py QUERN MODEL [--clients 8] [--requests 3] [--tokens 64] [--prompt-tokens 32] [--threads N]

Starts `quern serve` with room for all clients; each asks for `requests` completions one after another, streamed, of
prompts that have nothing in common. After a round that compiles, of one request a client, it prints

    answer_tps   tokens of all answers a second, over the whole time, prompts within it
    decode_tps   the same from the first token of each answer to its last, for all clients together
    first_ms     from the request to its first token, median and 95th percentile
    token_ms     from token to token of an answer, the same
    memory_mb    the greatest resident size of the server

Peers are timed by the same requests where they have OpenAI's interface: --url http://HOST:PORT in place of QUERN MODEL.
"""
import argparse
import http.client
import json
import random
import statistics
import subprocess
import threading
import time
import urllib.parse

arguments = argparse.ArgumentParser()
arguments.add_argument("quern", nargs="?")
arguments.add_argument("model", nargs="?")
arguments.add_argument("--url")
arguments.add_argument("--clients", type=int, default=8)
arguments.add_argument("--requests", type=int, default=3)
arguments.add_argument("--tokens", type=int, default=64)
arguments.add_argument("--prompt-tokens", type=int, default=32)
arguments.add_argument("--threads", type=int, default=2)
options = arguments.parse_args()


def start():
    """The server's process and its address."""
    process = subprocess.Popen(
        [options.quern, "serve", options.model, "--port", "0", "--threads", str(options.threads), "--parallel",
         str(options.clients), "--context", str(options.prompt_tokens + options.tokens + 8)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in process.stdout:
        if "http://" in line:
            return process, "http://" + line.split("http://")[1].split()[0].rstrip("/.,")
    raise SystemExit("serve_load.py: the server did not start")


def resident(process, what):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(what))


def ask(address, seed):
    """Times of the tokens of one answer, after that of the request."""
    ids = random.Random(seed)
    prompt = [1] + [ids.randrange(300, 500) for _ in range(options.prompt_tokens - 1)]
    body = {"prompt": prompt, "max_tokens": options.tokens, "temperature": 0, "stream": True,
            "logit_bias": {"2": -100}}
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=300)
    times = [time.perf_counter()]
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        raise SystemExit(f"serve_load.py: {answer.status} {answer.read()[:200]}")
    for line in answer:
        if line.startswith(b"data: {"):
            times.append(time.perf_counter())
    connection.close()
    return times


def crowd(address, requests, seed):
    answers = [[] for _ in range(options.clients)]

    def client(i):
        for r in range(requests):
            answers[i].append(ask(address, seed + 1000 * i + r))

    threads = [threading.Thread(target=client, args=(i,)) for i in range(options.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [times for each in answers for times in each]


def spread(values):
    values = sorted(values)
    return [round(statistics.median(values) * 1e3, 2), round(values[int(len(values) * 0.95)] * 1e3, 2)]


process, url = (None, options.url) if options.url else start()
try:
    address = urllib.parse.urlparse(url)
    crowd(address, 1, 1)
    begun = time.perf_counter()
    answers = crowd(address, options.requests, 2)
    wall = time.perf_counter() - begun
    tokens = options.tokens * len(answers)
    gaps = [b - a for times in answers for a, b in zip(times[1:], times[2:])]
    first = [times[1] - times[0] for times in answers]
    decode = statistics.mean(options.tokens / (times[-1] - times[1]) for times in answers) * options.clients
    print(json.dumps({"clients": options.clients, "threads": options.threads, "answers": len(answers),
                      "answer_tps": round(tokens / wall, 1), "decode_tps": round(decode, 1), "first_ms": spread(first),
                      "token_ms": spread(gaps), "chunks": sum(len(times) - 1 for times in answers),
                      "memory_mb": round(resident(process, "VmHWM"), 1) if process else None}))
finally:
    if process:
        process.terminate()
        process.wait(60)
