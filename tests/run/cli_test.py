#!/usr/bin/env python3
"""The command line as a user meets it: every option of every command, nonsense for each of them, damaged files, and one
clear sentence for bad input, with exit code 1, or 2 for a command line that cannot be.

    cli_test.py QUERN SOURCE_DIR
QUERN_LONG_TESTS=1: thousands of damaged files rather than hundreds.
"""
import os
import random
import re
import resource
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time

from model_keys import with_keys

QUERN, SOURCE = sys.argv[1:3]
MODEL = os.path.join(SOURCE, "models/addition.gguf")
LONG = os.environ.get("QUERN_LONG_TESTS", "") not in ("", "0")
SANITIZED = os.environ.get("QUERN_SANITIZED", "") not in ("", "0")  # address space has no meaning there
LIMIT = 4 << 30  # bytes of address space: a file may not make the program ask for much more than its size


def limits():
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(*args, **kwargs):
    kwargs.setdefault("stdout", subprocess.PIPE)
    try:
        return subprocess.run([QUERN, *args], stderr=subprocess.PIPE, timeout=120, preexec_fn=limits, **kwargs)
    except subprocess.TimeoutExpired:
        sys.exit(f"{args} hangs")


def expect(condition, what, result):
    if not condition:
        sys.exit(f"{what}\n  stdout: {result.stdout!r}\n  stderr: {result.stderr!r}\n  exit code: {result.returncode}")


def works(*args, out=None):
    result = run(*args)
    expect(result.returncode == 0, f"{args} must work", result)
    if out is not None:
        expect(result.stdout == out, f"{args} must print {out!r}", result)
    return result


def fails(sentence, *args, **kwargs):
    result = run(*args, **kwargs)
    # A command line that cannot be is 2, and says where help is.
    status = 2 if b"--help has examples)" in result.stderr else 1
    expect(result.returncode == status, f"{args} must exit with {status}", result)
    expect(sentence in result.stderr.decode(), f"{args} must say {sentence!r}", result)
    expect(one_line(result), f"{args} must print one line and no more", result)


def one_line(result):
    text = result.stderr
    return text.startswith(b"quern: ") and text.count(b"\n") == 1 and text.endswith(b"\n") and not result.stdout


def answers():
    summary = works("run", MODEL, "--prompt", "27+58=", out=b"85\n").stderr.decode()
    for word in ("load", "compile", "prefill", "decode", "thread"):
        if word not in summary:
            sys.exit(f"the summary does not name {word}: {summary}")
    works("run", MODEL, "--prompt", "27+58=", "--threads", "1", "--exact", out=b"85\n")
    for level in ("native", "x86-64-v2", "x86-64-v3"):
        works("run", MODEL, "--prompt", "27+58=", "--cpu", level, out=b"85\n")
    works("run", MODEL, "--prompt", "27+58=", "--specialise", out=b"85\n")
    works("run", MODEL, "--prompt", "27+58=", "--context", "16", out=b"85\n")
    works("run", MODEL, "--prompt", "27+58=", "--tokens", "1", out=b"8\n")
    works("run", MODEL, "--prompt", "27+58=", "--tokens", "0", out=b"\n")
    verbose = works("run", MODEL, "--prompt", "27+58=", "--verbose", out=b"85\n")
    expect(b" the variant for" in verbose.stderr, "--verbose names variants", verbose)


def guesses_and_shifts():
    """What is guessed changes nothing, to the bit; a full context goes on where that is asked for."""
    with tempfile.TemporaryDirectory() as folder:
        def draw(*args):
            path = os.path.join(folder, "logits.f32")
            text = works("run", MODEL, "--prompt", "1+1=2, 1+1=2, 1+", "--ids", "--logits", path, *args).stdout
            with open(path, "rb") as f:
                return text, f.read()
        for more in ((), ("--temp", "1.2", "--seed", "3", "--repeat-penalty", "1.1")):
            plain = draw("--tokens", "40", *more)
            for count in ("1", "3", "7"):
                if draw("--tokens", "40", "--speculate", count, *more) != plain:
                    sys.exit(f"--speculate {count} {more} changes what is drawn")
        full = works("run", MODEL, "--prompt", "27+58=", "--ids", "--tokens", "60", "--context", "16")
        shifted = works("run", MODEL, "--prompt", "27+58=", "--ids", "--tokens", "60", "--context", "16",
                        "--context-shift")
        expect(b"is full" in full.stderr and len(full.stdout.split()) == 10, "a full context ends the text", full)
        expect(len(shifted.stdout.split()) == 60, "--context-shift goes on", shifted)
        again = works("run", MODEL, "--prompt", "27+58=", "--ids", "--tokens", "60", "--context", "16",
                      "--context-shift", "--speculate", "7")
        expect(again.stdout == shifted.stdout, "and guesses change nothing", again)
    fails("\"8\" is not a whole number from 0 to 7", "run", MODEL, "--prompt", "1", "--speculate", "8")


def ids_and_sampling():
    by_ids = works("run", MODEL, "--tokens-in", "1,261,266,269,264,267,270", "--tokens", "2", "--ids")
    by_text = works("run", MODEL, "--prompt", "27+58=", "--tokens", "2", "--ids")
    expect(by_ids.stdout == by_text.stdout and len(by_ids.stdout.split()) == 2, "ids in and text in agree", by_ids)

    def draw(*args):
        return works("run", MODEL, "--prompt", "3", "--tokens", "20", "--ids", *args).stdout
    greedy, hot = draw(), [draw("--temp", "1.5", "--seed", seed) for seed in ("7", "7", "8")]
    if not hot[0] == hot[1] != hot[2]:
        sys.exit(f"a seed does not reproduce a run: {hot}")
    if greedy != draw("--temp", "1.5", "--seed", "7", "--top-k", "1") or \
            greedy != draw("--temp", "1.5", "--top-p", "1e-9"):
        sys.exit("the one likeliest token is not the greedy one")
    first = greedy.split()[0].decode()
    for args in (("--temp", "1.5", "--min-p", "1"), ("--logit-bias", first + "=50"), ("--frequency-penalty", "0")):
        if draw(*args).split()[0] != greedy.split()[0]:
            sys.exit(f"{args} draws another token than the likeliest")
    for args in (("--logit-bias", first + "=-inf"), ("--presence-penalty", "100"),
                 ("--dry-multiplier", "9", "--dry-breaker", "none", "--dry-allowed-length", "1"),
                 ("--temp", "1", "--xtc-probability", "1", "--xtc-threshold", "0"),
                 ("--temperature", "0.5", "--dynatemp-range", "0.5", "--dynatemp-exp", "0")):
        if draw(*args) == greedy:
            sys.exit(f"{args} makes no difference")
    drawn = {draw("--temp", "1.5", "--seed", "7", "--typical-p", "0.9", "--repeat-penalty", "1.3", "--threads", count)
             for count in ("1", "2", "3")}
    if len(drawn) != 1:
        sys.exit("the number of threads changes what is drawn")
    if draw("--temp", "1.5", "--seed", str(2**64 - 1)) == greedy:
        sys.exit("the largest seed draws nothing")


def file_sampling(folder):
    """A model whose file says how to draw from it: that is done, and said, where no option says otherwise."""

    path = with_keys(MODEL, folder, "sampling.gguf", {"general.sampling.temp": 1.5, "general.sampling.top_k": 7,
                                                      "general.sampling.top_p": 3.0})

    def draw(of, *args):
        return works("run", of, "--prompt", "3", "--tokens", "20", "--ids", *args)

    by_file = draw(path)
    expect(b"sampling by the model's file: --temp 1.5 --top-k 7\n" in by_file.stderr, "what the file says is said",
           by_file)
    expect(b"general.sampling.top_p is not a number in (0, 1]" in by_file.stderr, "what is wrong is said", by_file)
    if by_file.stdout != draw(MODEL, "--temp", "1.5", "--top-k", "7").stdout or by_file.stdout == draw(MODEL).stdout:
        sys.exit("the file's sampling is not what is drawn by")
    by_option = draw(path, "--temp", "0", "--top-k", "0")
    expect(b"sampling by" not in by_option.stderr and by_option.stdout == draw(MODEL).stdout, "options come first",
           by_option)


def logits(folder):
    path = os.path.join(folder, "logits.f32")
    result = works("run", MODEL, "--prompt", "27+58=", "--tokens", "2", "--ids", "--logits", path)
    with open(path, "rb") as f:
        data = f.read()
    rows = 7 + 2 - 1  # of the prompt with its begin token, and of each generated token that was run
    expect(len(data) % (4 * rows) == 0, f"{len(data)} bytes are {rows} rows", result)
    vocabulary = len(data) // 4 // rows
    works("run", MODEL, "--prompt", "27+58=", "--tokens", "2", "--ids", "--logits", path + ".npy")
    with open(path + ".npy", "rb") as f:
        header, numbers = f.read(128), f.read()
    shape = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows},{vocabulary},), }}".encode()
    expect(numbers == data and header.startswith(b"\x93NUMPY\x01\x00\x76\x00" + shape), f"an .npy file of {header}",
           result)
    values = struct.unpack(f"<{rows * vocabulary}f", data)
    likeliest = [max(range(vocabulary), key=lambda i: values[row * vocabulary + i]) for row in (rows - 2, rows - 1)]
    expect(result.stdout.decode().split() == [str(i) for i in likeliest], f"the last rows choose {likeliest}", result)
    fails("cannot write", "run", MODEL, "--prompt", "1", "--logits", os.path.join(folder, "no/such/folder"))
    if os.path.exists("/dev/full"):
        full = run("run", MODEL, "--prompt", "1", "--tokens", "1", "--logits", "/dev/full")
        expect(full.returncode == 1 and b"cannot write /dev/full" in full.stderr, "a full disk is an error", full)
        with open("/dev/full", "wb") as sink:
            full = run("inspect", MODEL, stdout=sink)
        expect(full.returncode == 1 and b"cannot write to standard output" in full.stderr,
               "a full standard output is an error", full)
    copy = os.path.join(folder, "model.gguf")
    with open(MODEL, "rb") as f, open(copy, "wb") as g:
        g.write(f.read())
    fails("cannot write", "run", copy, "--prompt", "1", "--logits", copy)
    # Nor by what other commands write, under whatever name it has.
    os.rename(copy, os.path.join(folder, "m.o"))
    for name in ("m.json", "m.h", "m.kir", "m.html"):
        os.link(os.path.join(folder, "m.o"), os.path.join(folder, name))
    fails("over the input", "compile", os.path.join(folder, "m.o"), "-o", folder)
    fails("over the input", "compile", os.path.join(folder, "m.kir"), "-o", folder, "--emit", "kir")
    for option, name in (("--json", "m.json"), ("--html", "m.html"), ("--trace", "m.o")):
        fails("over the input", "profile", os.path.join(folder, "m.o"), "--prompt", "1", "--tokens", "1", option,
              os.path.join(folder, name))
    for name in ("m.o", "m.json", "m.h", "m.kir", "m.html"):
        expect(os.path.getsize(os.path.join(folder, name)) == os.path.getsize(MODEL), f"{name} is as it was", result)


def threads():
    """--threads is the number of threads that compute, whatever the machine has, and stays within its bounds."""
    for count in (1, 2, 3):
        result = works("run", MODEL, "--prompt", "27+58=", "--threads", str(count), out=b"85\n")
        expect(f", {count} thread".encode() in result.stderr, f"{count} threads are used", result)
        seen = []
        while count not in seen and len(seen) < 10:  # a look may come too late, when threads are gone already
            process = subprocess.Popen([QUERN, "run", MODEL, "--prompt", "1", "--temp", "1", "--tokens", "100", "--ids",
                                        "--threads", str(count)],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            process.stdout.read(1)  # the first token is there: nothing compiles any more
            seen.append(len(os.listdir(f"/proc/{process.pid}/task")))
            process.stdout.read()
            process.wait()
        if not SANITIZED and max(seen) != count:
            sys.exit(f"--threads {count} runs {seen} threads")
    usable = len(os.sched_getaffinity(0))
    result = works("run", MODEL, "--prompt", "27+58=", out=b"85\n")
    used = int(result.stderr.split(b", ")[-1].split()[0])
    expect(1 <= used <= usable, f"at most {usable} threads unless more are asked for", result)
    first = str(min(os.sched_getaffinity(0)))
    one = subprocess.run(["taskset", "-c", first, QUERN, "run", MODEL, "--prompt", "27+58="], capture_output=True,
                         check=False)
    expect(one.stdout == b"85\n" and b", 1 thread\n" in one.stderr, "one processor means one thread", one)
    works("run", MODEL, "--prompt", "27+58=", "--threads", "64", out=b"85\n")


def nonsense():
    prompt = ("run", MODEL, "--prompt", "1")
    for option, values in {
        "--tokens": ("-3", "many", "1.5", "99999999999999999999", ""),
        "--temp": ("-1", "hot", "nan", "inf", "-inf", ""),
        "--top-k": ("-1", "x", "2.5", "99999999999"),
        "--top-p": ("-0.1", "0", "1.5", "nan", "p"),
        "--seed": ("-1", "x", "1.5", str(2**64), "Random"),
        "--min-p": ("-0.1", "1.5", "nan", "p"),
        "--typical-p": ("-0.1", "0", "1.5", "nan", "p"),
        "--repeat-penalty": ("0", "-1", "inf", "nan", "x"),
        "--frequency-penalty": ("inf", "nan", "x"),
        "--presence-penalty": ("inf", "nan", "x"),
        "--penalty-last": ("-2", "1.5", "x"),
        "--top-n-sigma": ("-1", "inf", "x"),
        "--xtc-probability": ("-0.1", "1.1", "nan"),
        "--dry-allowed-length": ("0", "1.5", "010x"),
        "--dry-base": ("0.9", "inf"),
        "--logit-bias": ("3", "3=", "=3", "3=x", "x=3", "3=inf", "3=nan", "-3=1", "3 = 1", ""),
        "--threads": ("-1", "257", "x", "1e2", "99999999999"),
        "--context": ("-1", "x", "1e3", "999999999999", "99999999999999999999"),
        "--cpu": ("pentium", "", "NATIVE", "x86-64-v9"),
        "--no-such-option": ("1",),
    }.items():
        for value in values:
            fails("", *prompt, option, value)
    fails("top_p", *prompt, "--top-p", "0")
    fails("temperature", *prompt, "--temp", "nan")
    fails("unknown cpu level", *prompt, "--cpu", "pentium")
    for ids in ("x", "1,", ",1", "1,,2", "1 2", "1;2", "0x10", "1.5", "99999999999"):
        fails("is not a list of ids", "run", MODEL, "--tokens-in", ids)
    for ids in ("1,99999", "-1", "1,-7", "2147483647"):
        fails("out of range", "run", MODEL, "--tokens-in=" + ids)
    fails("excludes", *prompt, "--tokens-in", "1")
    fails("do not fit the context", "run", MODEL, "--prompt", "1+1=" * 1000)
    fails("do not fit the context", "run", MODEL, "--prompt", "27+58=", "--context", "3")
    fails("MODEL", "run")
    fails("MODEL", "inspect")
    fails("MODEL", "dump")
    fails("a command is required; there are run, chat, ")
    fails("", "walk", MODEL)
    fails("", "inspect", MODEL, MODEL)
    fails("", "inspect", MODEL, "--threads", "2")
    fails("there is no stage", "dump", MODEL, "--stage", "wasm")
    fails("there is no pass", "dump", MODEL, "--dump-after", "magic")
    fails("there is no pass", "dump", MODEL, "--stop-after", "magic")
    fails("there is no pass", "dump", MODEL, "--skip", "magic")
    fails("excludes", "dump", MODEL, "--dump-after", "cse", "--stop-after", "dce")
    fails("excludes", "dump", MODEL, "--dump-after", "cse", "--stage", "kir")
    fails("excludes", "dump", MODEL, "--stop-after", "cse", "--stage", "kir")
    fails("excludes", "dump", MODEL, "--each", "folder", "-o", "file")
    expect(run("walk", MODEL).returncode == 2 and run("inspect", "/nowhere").returncode == 1,
           "a command line that cannot be is 2, what it names 1", run("walk"))
    fails("nothing comes after it", "dump", MODEL, "--skip", "cse", "--stop-after", "cse")
    fails("cannot be skipped", "dump", MODEL, "--skip", "lower")
    fails("no kernel has a label", "dump", MODEL, "--stage", "kir", "--kernel", "nowhere")
    for step in ("0", "-1", "999", "x", "99999999999999999999"):
        fails("", "dump", MODEL, "--step", step)
    # Text that is no text is a prompt like any other.
    works("run", MODEL, "--prompt", b"\xff\xfe\x80", "--tokens", "1")
    works("run", MODEL, "--prompt", "", "--tokens", "1")


def prompts(folder):
    """Where a prompt comes from, and what becomes of control tokens in it."""
    path = os.path.join(folder, "prompt.txt")
    with open(path, "w", encoding="utf-8") as f:
        f.write("27+58=\n")
    works("run", "-m", MODEL, "-f", path, "-n", "2", "-t", "1", "-c", "16", "-s", "7", out=b"85\n")
    for args in ((), ("--file", "-")):
        piped = run("run", MODEL, *args, input=b"27+58=")
        expect(piped.returncode == 0 and piped.stdout == b"85\n", "standard input is a prompt", piped)
    fails("cannot open", "run", MODEL, "--file", os.path.join(folder, "no-such"))
    fails("excludes", "run", MODEL, "--file", path, "--prompt", "1")
    escaped = works("run", MODEL, "-e", "--prompt", "a\\n\\t\\\\\\q", "--logits", path + ".a", "--tokens", "0")
    given = works("run", MODEL, "--prompt", "a\n\t\\\\q", "--logits", path + ".b", "--tokens", "0")
    with open(path + ".a", "rb") as f, open(path + ".b", "rb") as g:
        expect(f.read() == g.read(), "-e reads escapes", escaped if escaped.returncode else given)
    works("run", MODEL, "--prompt", "27+58=", "--stop", "5", out=b"8\n")
    works("run", MODEL, "--prompt", "27+58=", "--stop", "9", "--stop", "85", out=b"\n")
    works("tokenize", MODEL, "27+58=", "--ids", out=b"1,261,266,269,264,267,270\n")
    works("tokenize", MODEL, "2</s>", "--ids", "--no-begin", out=b"261,2\n")
    works("tokenize", MODEL, "2+", "--pieces", out=b'"<s>"\n"2"\n"+"\n')
    spelled = works("tokenize", MODEL, "2</s>", "--ids", "--no-special").stdout
    expect(len(spelled.split(b",")) == 6, "without special tokens they are text", run("tokenize", MODEL, "2</s>"))
    works("tokenize", MODEL, "--file", path, "--ids", out=b"1,261,266,269,264,267,270\n")
    full = works("run", MODEL, "--prompt", "3", "--temp", "1", "--tokens", "100", "--ids", "--context", "8")
    expect(b"the context of 8 positions is full" in full.stderr, "a full context is said", full)
    seeds = [works("run", MODEL, "--prompt", "3", "--temp", "1", "--seed", "random").stderr.splitlines()[-1]
             for _ in range(2)]
    if not (seeds[0].startswith(b"seed ") and seeds[0] != seeds[1]):
        sys.exit(f"random seeds are said, and differ: {seeds}")
    fails("--context 4001 or more makes room", "run", MODEL, "--prompt", "1+1=" * 1000)


def unknown_names():
    fails("there is no command rnu; did you mean run?", "rnu", MODEL)
    fails("there is no command frobnicate; there are run, ", "frobnicate")
    fails("there is no option --threds; did you mean --threads?", "run", "--threds", "2", MODEL)
    fails("there is no option --one; there is no option --two (", "run", MODEL, "--one", "1", "--two")
    fails("not expected: a b (", "run", MODEL, "a", "b")
    fails("there is no option --verson; did you mean --version? (quern --help", "--verson")
    fails("there is no option -x (", "run", MODEL, "-x", "1")
    fails("--threads goes behind run (", "--threads", "2", "run", MODEL)
    fails("--version goes before run (", "run", "--version")
    fails("--cache goes behind list (", "cache", "--cache", "off", "list")
    fails("there is no command lst; did you mean list? (quern cache --help", "cache", "lst")
    fails("a command is required; there are list, ", "cache")
    fails("there is no command walk; there are run, ", "help", "walk")
    fails("--prompt needs a value (", "run", MODEL, "--prompt")
    fails('--temp: "hot" is not a number (', "run", MODEL, "--temp", "hot")
    for size in ("-1", "50XB", "1e3", "MB", "1.5GB", "9999999TB", ""):
        fails(f'--bytes: "{size}" is not a number of bytes', "cache", "gc", "--bytes", size)
    # The server is another program, and says the same.
    for program in ((QUERN, "serve"), (QUERN + "-serve",)):
        for args, says in (((), "MODEL is required"), ((MODEL, "--prot", "1"), "did you mean --port?"),
                           ((MODEL, "--port", "70000"), '"70000" is not a whole number from 0 to 65535')):
            refused = subprocess.run([*program, *args], capture_output=True, timeout=60)
            expect(refused.returncode == 2 and one_line(refused) and says in refused.stderr.decode(),
                   f"{program} {args} says {says}", refused)
    fails("cannot open /nowhere/key", "serve", MODEL, "--port", "0", "--key-file", "/nowhere/key")


def of_the_other_kind(folder):
    """An option that would do nothing with a file of this kind is refused, so that nobody believes it."""
    path = os.path.join(folder, "graph.qir")
    with open(path, "w", encoding="utf-8") as f:
        f.write('graph g {\n  %0 = Input() {name = "x"} : f32[3]\n  %1 = Exp(%0) : f32[3]\n  return %1\n}\n')
    works("run", path)
    expect(not works("run", path, "--quiet").stderr and not works("run", MODEL, "-q", "--prompt", "1").stderr,
           "--quiet says nothing", run("run", path, "-q"))
    fails("--prompt is an option of language models, and " + path, "run", path, "--prompt", "hi")
    fails("--context is an option of language models", "profile", path, "--context", "8")
    fails("--context is an option of language models", "dump", path, "--context", "8")
    fails("--embed-vocabulary is an option of language models", "compile", path, "--embed-vocabulary")
    fails("--in is an option of graphs, and " + MODEL, "run", MODEL, "--prompt", "1", "--in", "x=x.npy")
    fails("--size is an option of graphs", "profile", MODEL, "--prompt", "1", "--size", "N=2")
    variable = run("run", path, env={**os.environ, "QUERN_TOKENS": "3"})
    expect(variable.returncode == 0, "a variable is for all commands", variable)
    # What is wrong with a file names it.
    with open(path, "w", encoding="utf-8") as f:
        f.write("graph g {\n  %0 = Expp() : f32[3]\n")
    fails(path + ": 2:12: there is no block or op Expp; did you mean Exp?", "run", path)
    fails(path + ": ", "convert", path, path + ".qgf")
    with open(path, "w", encoding="utf-8"):
        pass
    fails(path + ": the file is empty", "run", path)
    empty = run("kernel", path)
    expect(empty.returncode == 2 and b"there is no kernel in it" in empty.stderr, "an empty file has no kernels", empty)


def outputs_first(folder):
    """Where nothing can be written is said before anything is done."""
    nowhere = os.path.join(folder, "no", "such")
    for option in ("--json", "--trace", "--html"):
        fails("cannot write " + nowhere, "profile", MODEL, "--prompt", "1", option, nowhere)
        fails("cannot write " + folder, "profile", MODEL, "--prompt", "1", option, folder)
    graph = os.path.join(SOURCE, "bench", "graphs", "exp_1M.qir")
    fails("cannot write " + nowhere, "bench", graph, "--json", nowhere)
    fails("cannot write " + nowhere, "run", graph, "--out", "0=" + nowhere)
    fails("cannot write " + nowhere, "calibrate", graph, "-o", nowhere)
    fails("cannot write " + nowhere, "quantise", MODEL, "-o", nowhere)
    fails("cannot write " + nowhere, "reduce", os.path.join(SOURCE, "tests", "repro", "flat_map.qir"), "-o", nowhere)


def unknown_tokenizer(folder):
    """Ids in and ids out need no tokenizer; text does."""
    with open(MODEL, "rb") as f:
        model = f.read()
    key = b"tokenizer.ggml.model" + struct.pack("<IQ", 8, 5)
    if model.count(key + b"llama") != 1:
        sys.exit("the bundled model's tokenizer is not where it was")
    path = os.path.join(folder, "tokenizer.gguf")
    with open(path, "wb") as f:
        f.write(model.replace(key + b"llama", key + b"rwkv7"))
    ids = ("--tokens-in", "1,261,266,269,264,267,270", "--tokens", "2")
    works("run", path, *ids, "--ids", out=works("run", MODEL, *ids, "--ids").stdout)
    fails('tokenizer model "rwkv7" is not supported', "run", path, *ids)
    fails('tokenizer model "rwkv7" is not supported', "run", path, "--prompt", "1", "--ids")
    fails('tokenizer model "rwkv7" is not supported', "tokenize", path, "1")
    works("compile", path, "-o", os.path.join(folder, "unknown"))


def files(folder):
    def write(name, data):
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(data)
        return path
    with open(MODEL, "rb") as f:
        model = f.read()
    for command in (("inspect",), ("run", "--prompt", "1"), ("dump",)):
        command, rest = command[0], command[1:]
        fails("cannot open", command, "/nonexistent.gguf", *rest)
        fails("not a regular file", command, folder, *rest)
        fails("not a regular file", command, "/dev/zero", *rest)
        fails("not a GGUF file", command, write("text.gguf", b"hello, world"), *rest)
        fails("", command, write("empty.gguf", b""), *rest)
        fails("reaches past the end of the file", command, write("cut.gguf", model[:100000]), *rest)
        for size in (3, 4, 8, 23, 24, 25, 100, 1000):
            fails("", command, write("cut.gguf", model[:size]), *rest)
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    fails("not a regular file", "inspect", pipe)
    fails("not a regular file", "dump", pipe)
    locked = write("locked.gguf", model)
    os.chmod(locked, 0)
    if not os.access(locked, os.R_OK):
        fails("cannot open", "inspect", locked)
    os.chmod(locked, stat.S_IRUSR | stat.S_IWUSR)
    # A name that would steer a terminal is printed harmlessly.
    renamed = model.replace(b"general.name", b"gen\x1b[2J.name")
    if renamed == model:
        sys.exit("the bundled model has no general.name")
    result = works("inspect", write("escape\x1b[2J.gguf", renamed))
    expect(b"\x1b" not in result.stdout, "escape sequences are escaped", result)


def damage(folder):
    """Seeded changes of the header (metadata and tensor table): an answer or a sentence, in bounded time and memory."""
    with open(MODEL, "rb") as f:
        model = f.read()
    end = model.rindex(b"output_norm.weight") + 64  # the tensor table ends about here
    seed = int(os.environ.get("QUERN_SEED", "1"))
    count = 3000 if LONG else 300
    path = os.path.join(folder, "damaged.gguf")
    refused = 0
    start = time.time()
    for case in range(count):
        rng = random.Random(seed * 1000003 + case)
        data = bytearray(model)
        kind = case % 5
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(0, 64) if rng.random() < 0.2 else rng.randrange(0, end)
            if kind == 0:
                data[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                data[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff))
            elif kind == 2:
                width = rng.choice((4, 8))
                at = min(at, len(data) - width)
                word = rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, rng.getrandbits(32)))
                data[at:at + width] = word.to_bytes(4, "little") * (width // 4)
            elif kind == 3:
                length = rng.randrange(1, 64)
                del data[at:at + length]
            elif rng.random() < 0.5:
                data = data[:rng.randrange(0, len(data))]
            else:
                data = data[:at] + bytes(rng.randrange(1, 64)) + data[at:]
        with open(path, "wb") as f:
            f.write(data)
        commands = [("inspect", path)]
        if case % 3 == 0:
            commands.append(("run", path, "--prompt", "1+1=", "--tokens", "2", "--threads", "1"))
        for command in commands:
            result = run(*command)
            if result.returncode != 0:
                refused += 1
                expect(result.returncode == 1 and result.stderr.count(b"\n") == 1,
                       f"seed {seed}, case {case}: {command[0]} of a damaged file", result)
    if not 0 < refused < count * 4 // 3:
        sys.exit(f"{refused} refusals of {count} damaged files: the damage does not reach what it should")
    print(f"{count} damaged files with seed {seed}: {refused} refusals, {time.time() - start:.1f} s")


def dumps():
    inspect = works("inspect", MODEL).stdout
    for word in (b"token_embd.weight", b"general.architecture", b"GGUF v3", b"1.3M parameters in 21 tensors, ",
                 b": F16 ", b"\nruns\n", b"general.file_type = 1 (F16)\n", b'string[272]: "<unk>", "<s>", '):
        if word not in inspect:
            sys.exit(f"inspect does not print {word}")
    for stage, word in (("hir", b"Attention"), ("mir", b"Region"), ("lir", b"arena"), ("kir", b"kernel"),
                        ("llvm", b"define"), ("asm", b"ret")):
        result = works("dump", MODEL, "--stage", stage)
        expect(word in result.stdout, f"dump --stage {stage} holds {word}", result)
    if b"\nlayers.0.ffn.matmul.f16:\n" not in works("dump", MODEL, "--stage", "asm", "--kernel", "0/ffn").stdout:
        sys.exit("assembly calls kernels otherwise than the rest")
    every = works("dump", MODEL, "--stage", "kir").stdout
    some = works("dump", MODEL, "--stage", "kir", "--kernel", "layers.0/ffn").stdout
    if not 0 < some.count(b"\nkernel ") < every.count(b"\nkernel ") or b"layers.0/ffn" not in some:
        sys.exit("--kernel does not choose kernels")
    long_step = works("dump", MODEL, "--stage", "kir", "--step", "50").stdout
    if long_step == every:
        sys.exit("--step makes no difference")
    lowered = works("dump", MODEL, "--dump-after", "lower").stdout
    if b"RmsNorm(" not in lowered or b"RmsNorm(" in works("dump", MODEL, "--dump-after", "expand_composites").stdout:
        sys.exit("--dump-after is not the graph after that pass")
    if works("dump", MODEL, "--stop-after", "lower").stdout != lowered:
        sys.exit("--stop-after differs from --dump-after")
    if b"RmsNorm(" not in works("dump", MODEL, "--skip", "expand_composites", "--stop-after", "cse").stdout:
        sys.exit("--skip does not skip")
    if b"plan" not in works("dump", MODEL, "--dump-after", "plan").stdout:
        sys.exit("the plan is what comes after plan")
    exact, quantised = (works("dump", MODEL, "--stage", "mir", *flags).stdout for flags in (("--exact",), ()))
    if not exact or not quantised:
        sys.exit("dump --exact prints nothing")


def helps():
    for command in ((), ("run",), ("chat",), ("tokenize",), ("inspect",), ("dump",), ("ops",), ("compile",), ("cache",),
                    ("replay",), ("reduce",)):
        text = works(*command, "--help").stdout.decode()
        if "Examples:" not in text or text.count("  quern ") < 1:
            sys.exit(f"help of {command} has no examples")
        # The examples are options that exist: each word that begins with -- is in the help above them.
        options, examples = text.split("Examples:")
        if command == ("cache",):  # whose verbs have options of their own
            options += "".join(works("cache", verb, "--help").stdout.decode()
                               for verb in ("list", "explain", "verify", "gc", "clear"))
        for word in examples.split():
            if word.startswith("--") and command and word not in options and word != "--help`":
                sys.exit(f"help of {command} has an example with {word}, which it does not list")
    version = works("--version").stdout.decode()
    if not re.fullmatch(r"quern \d+\.\d+\.\d+( \([0-9a-f]{9}\+?\))?, LLVM \d+\.\d+\.\d+, level \w+ here\n", version):
        sys.exit(f"--version says {version!r}")


def environment():
    """A variable stands for an option that is not given; what is given goes before it."""
    def with_variable(name, value, *args):
        return run(*args, env={**os.environ, name: value})
    one = with_variable("QUERN_THREADS", "1", "run", MODEL, "--prompt", "27+58=")
    expect(b", 1 thread" in one.stderr and one.stdout == b"85\n", "QUERN_THREADS is --threads", one)
    two = with_variable("QUERN_THREADS", "1", "run", MODEL, "--prompt", "27+58=", "--threads", "2")
    expect(b", 2 threads" in two.stderr, "an option goes before its variable", two)
    bad = with_variable("QUERN_THREADS", "many", "run", MODEL, "--prompt", "27+58=")
    expect(bad.returncode == 2 and b"\"many\" is not a whole number" in bad.stderr, "a variable is checked", bad)
    expect(b"; QUERN_THREADS is set (" in bad.stderr, "a variable is named", bad)
    other = with_variable("QUERN_THREADS", "many", "inspect", MODEL)
    expect(other.returncode == 0, "a command reads the variables of its own options", other)
    port = with_variable("QUERN_PORT", "x", "serve", MODEL)
    expect(port.returncode == 2 and b"QUERN_PORT is set" in port.stderr, "the server reads variables, too", port)
    if b"QUERN_TOP_K" not in works("run", "--help").stdout:
        sys.exit("the help does not name the variables")


def typed(folder):
    """Completion in a shell as users have it, and the manual page; both know every command and option of the help."""
    commands = re.findall(r"^  (\w+) ", works("--help").stdout.decode().split("Subcommands:")[1].split("Examples:")[0],
                          re.M)
    script = os.path.join(folder, "quern.bash")
    with open(script, "wb") as f:
        f.write(works("completion", "bash").stdout)

    def completed(*words):
        array = " ".join(f"'{word}'" for word in words)
        command = f"source {script}; COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _quern; echo ${{COMPREPLY[@]}}"
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=folder,
                              check=True).stdout.split()

    if sorted(completed("quern", "")) != sorted(commands + ["-h", "--help", "--version"]):
        sys.exit(f"bash completes {completed('quern', '')}, the help has {commands}")
    if completed("quern", "prof") != ["profile"] or completed("quern", "run", "--top-k") != ["--top-k"]:
        sys.exit("bash completes neither a command nor an option")
    if completed("quern", "cache", "ex") != ["explain"] or "--cpu" not in completed("quern", "cache", "explain", "--c"):
        sys.exit("bash completes no verb of the cache")
    if "quern.bash" not in completed("quern", "inspect", "qu"):
        sys.exit("bash completes no file")
    zsh = works("completion", "zsh").stdout
    if not zsh.startswith(b"#compdef quern\n") or any(f"'{c}:".encode() not in zsh for c in commands):
        sys.exit("the completion for zsh lacks commands")
    if shutil.which("zsh"):
        result = subprocess.run(["zsh", "-n"], input=zsh, capture_output=True)
        expect(result.returncode == 0 and not result.stderr, "zsh reads its completion", result)
    page = works("man").stdout.decode()
    for command in commands:
        if f".SS quern {command}\n" not in page:
            sys.exit(f"the manual page lacks {command}")
    for option in re.findall(r"^  (?:-\w,)?--([\w-]+)", works("run", "--help").stdout.decode(), re.M):
        if "\\-\\-" + option.replace("-", "\\-") not in page:
            sys.exit(f"the manual page lacks --{option}")
    if shutil.which("man"):
        path = os.path.join(folder, "quern.1")
        with open(path, "w", encoding="utf-8") as f:
            f.write(page)
        result = subprocess.run(["man", "--warnings", "-l", path], capture_output=True,
                                env={**os.environ, "PAGER": "cat"})
        expect(result.returncode == 0 and not result.stderr and b"quern reduce" in result.stdout, "man reads it",
               result)


def each_pass(folder):
    """Every pass as a file; the one of a pass is what --dump-after prints."""
    works("dump", MODEL, "--each", os.path.join(folder, "passes"), out=b"")
    names = sorted(os.listdir(os.path.join(folder, "passes")))
    if names[0] != "01-lower.mir" or not names[-1].endswith("-plan.lir") or len(names) < 12:
        sys.exit(f"--each writes {names}")
    simplified = next(name for name in names if name.endswith("-simplify.mir"))
    for name in (names[0], simplified, names[-1]):
        after = name.split("-", 1)[1].split(".")[0]
        with open(os.path.join(folder, "passes", name), "rb") as f:
            if f.read() != works("dump", MODEL, "--dump-after", after).stdout:
                sys.exit(f"{name} is not what is there after {after}")
    path = os.path.join(folder, "ffn.kir")
    works("dump", MODEL, "--stage", "kir", "-o", path, out=b"")
    with open(path, "rb") as f:
        if f.read() != works("dump", MODEL, "--stage", "kir").stdout:
            sys.exit("-o writes something else")
    fails("cannot write", "dump", MODEL, "-o", os.path.join(folder, "no", "such"))


answers()
guesses_and_shifts()
ids_and_sampling()
threads()
nonsense()
unknown_names()
dumps()
helps()
environment()
with tempfile.TemporaryDirectory(prefix="quern_cli_") as scratch:
    file_sampling(scratch)
    logits(scratch)
    of_the_other_kind(scratch)
    outputs_first(scratch)
    prompts(scratch)
    typed(scratch)
    each_pass(scratch)
    unknown_tokenizer(scratch)
    files(scratch)
    damage(scratch)
print("the command line does what it says")
