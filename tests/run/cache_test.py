#!/usr/bin/env python3
"""The cache of compiled kernels from the outside: second starts, what `quern cache` says, damage, two processes at
once.

  cache_test.py QUERN ROOT
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

QUERN, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = str(ROOT / "models/addition.gguf")
PROMPT = "27+58="


def fail(message):
    sys.exit(f"cache_test: {message}")


def quern(*args, cache=None, env=None, status=0):
    environment = {key: value for key, value in os.environ.items() if key not in ("QUERN_CACHE", "XDG_CACHE_HOME")}
    if cache is not None:
        environment["QUERN_CACHE"] = str(cache)
    environment.update(env or {})
    result = subprocess.run([QUERN, *map(str, args)], capture_output=True, env=environment, timeout=300)
    if result.returncode != status:
        fail(f"quern {' '.join(map(str, args))}: exit status {result.returncode}, not {status}\n"
             f"{result.stderr.decode()}")
    return result


def start(*args, cache=None, env=None):
    """(kernels compiled, kernels from the cache) of a run that must answer right."""
    result = quern("run", MODEL, "--prompt", PROMPT, *args, cache=cache, env=env)
    if result.stdout.strip() != b"85":
        fail(f"{PROMPT} gave {result.stdout!r}")
    text = result.stderr.decode()
    found = re.search(r"\((?:(\d+) kernels)?(?: and )?(?:(\d+)(?: kernels)? from the cache)?\)", text)
    if not found:
        fail(f"no count of kernels in {text!r}")
    return int(found[1] or 0), int(found[2] or 0)


def text(*args, cache, status=0):
    result = quern("cache", *args, cache=cache, status=status)
    return (result.stdout if status == 0 else result.stderr).decode()


def expect(condition, what):
    if not condition:
        fail(what)


def second_starts(folder):
    cache = folder / "a"
    cold, hits = start(cache=cache)
    expect(cold > 5 and hits == 0, f"a first start compiled {cold} and found {hits}")
    expect(start(cache=cache) == (0, cold), "a second start compiles")
    expect(start("--cache-verify", cache=cache) == (0, cold), "--cache-verify does not take what it has verified")
    expect(start("--cache", "off", cache=cache) == (cold, 0), "--cache off is not off")
    expect(start(cache="off") == (cold, 0), "QUERN_CACHE=off is not off")
    refused = subprocess.run([QUERN, "run", MODEL, "--prompt", PROMPT], capture_output=True, check=False,
                             env={**os.environ, "QUERN_CACHE": "/proc/nowhere"})
    expect(refused.returncode == 1 and b"/proc/nowhere" in refused.stderr, f"no folder: {refused.stderr}")
    expect(start("--cache", folder / "b", cache=cache) == (cold, 0), "--cache does not come before QUERN_CACHE")
    expect(start("--cache", folder / "b", cache="off") == (0, cold), "a named folder is not found again")
    # The same bits.
    logits = []
    for name, where in (("off", "off"), ("cold", folder / "c"), ("warm", folder / "c")):
        quern("run", MODEL, "--prompt", PROMPT, "--logits", folder / name, cache=where)
        logits.append((folder / name).read_bytes())
    expect(logits[0] == logits[1] == logits[2] and len(logits[0]) > 1000, "logits differ with and without the cache")
    return cache, cold


def places(folder):
    home = folder / "home"
    home.mkdir()
    expect(start(env={"HOME": str(home)})[1] == 0 and start(env={"HOME": str(home)})[0] == 0, "the home folder's cache")
    made = home / ".cache/quern"
    expect(made.is_dir() and made.stat().st_mode & 0o777 == 0o700, "~/.cache/quern is not for its owner alone")
    expect(all(f.stat().st_mode & 0o777 == 0o600 for f in made.iterdir()), "files others may read")
    expect(start(env={"HOME": str(home), "XDG_CACHE_HOME": str(folder / "xdg")})[1] == 0, "XDG_CACHE_HOME comes first")
    expect((folder / "xdg/quern").is_dir(), "XDG_CACHE_HOME is not used")
    # No home, and a home that cannot be used: no cache, no error. A folder by name: an error.
    expect(start(env={"HOME": ""})[1] == 0, "no home")
    expect(start(env={"HOME": "/proc"})[1] == 0, "a home that cannot be written to")
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    error = quern("run", MODEL, "--cache", shared, status=1).stderr.decode()
    expect(error.count("\n") == 1 and "may be written to by others" in error, f"a shared folder: {error!r}")
    expect("there is no cache" in text("list", cache="off", status=1), "quern cache list without a cache")


def plans_in(cache):
    return text("list", cache=cache).count("  plan: ")


def reports(cache, kernels):
    listed = text("list", cache=cache)
    plans = plans_in(cache)
    expect(f"{kernels + plans} entries" in listed and "layers.0.ffn" in listed, f"list: {listed}")
    expect(plans >= 2 and "plan: program" in listed and "plan: variant 0" in listed, f"list of plans: {listed}")
    explained = text("explain", MODEL, cache=cache)
    expect(explained.count("  hit ") == kernels, f"explain does not hit {kernels} kernels:\n{explained}")
    expect("LOGITS_ROWS" in explained or "SEQ" in explained, "explain does not name the variants")
    other = text("explain", MODEL, "--cpu", "x86-64-v2", cache=cache)
    miss = re.search(r"  miss  \S+: the nearest entry differs in level: "
                     r"here \"sse4\", there \"\w+\"; in features: here alone x86-64-v2; there alone [\w, -]*avx2, ",
                     other)
    expect("  hit " not in other and miss and max(map(len, other.splitlines())) < 500 and ": as above\n" in other,
           f"explain of another level:\n{other}")
    verified = text("verify", cache=cache)
    expect(f"{kernels} kernels compiled again, byte for byte the same; 0 of other builds or levels and {plans} plans"
           in verified,
           f"verify: {verified}")


def damage(cache, kernels):
    plans = plans_in(cache)
    files = sorted(file for file in cache.glob("*.qo") if b"plan of " not in file.read_bytes())
    whole = files[0].read_bytes()
    files[0].write_bytes(whole[: len(whole) // 2])
    files[1].write_bytes(b"")
    # A build that is another in one field: as an entry of an older Quern would be.
    files[2].rename(cache / ("0" * 32 + ".qo"))
    expect("its file is damaged" in text("explain", MODEL, cache=cache), "explain does not say that a file is damaged")
    expect(start(cache=cache) == (3, kernels - 3), "damaged entries are not compiled again")
    expect(start(cache=cache) == (0, kernels), "damaged entries are not replaced")
    expect("1 file damaged, removed" in text("verify", cache=cache), "verify does not remove what is damaged")
    entries = [file for file in cache.iterdir() if file.name != "collected"]
    expect(len(entries) == kernels + plans, "files that should not be there")


def tidying(cache, kernels):
    plans = plans_in(cache)
    removed = text("gc", "--bytes", "20000", cache=cache)
    left = sum(f.stat().st_size for f in cache.iterdir())
    expect(0 < left <= 20000, f"gc left {left} bytes: {removed}")
    cold, hits = start(cache=cache)
    expect(hits > 0 and cold + hits == kernels, "what gc left is not used")
    expect(f"removed {kernels + plans} files" in text("clear", cache=cache), "clear")
    expect(not list(cache.iterdir()), "clear left something")


def two_at_once(folder, kernels):
    cache = folder / "shared-by-two"
    environment = {**os.environ, "QUERN_CACHE": str(cache)}
    for _ in range(3):
        running = [subprocess.Popen([QUERN, "run", MODEL, "--prompt", PROMPT], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, env=environment) for _ in range(4)]
        for process in running:
            out, error = process.communicate(timeout=300)
            expect(process.returncode == 0 and out.strip() == b"85", f"one of four at once: {error}")
        verified = text("verify", cache=cache)
        expect(f"{kernels} kernels compiled again" in verified and "0 files damaged" in verified,
               f"after four at once: {verified}")
        expect(not list(cache.glob("*.tmp")), "temporary files are left")
        text("clear", cache=cache)


with tempfile.TemporaryDirectory(prefix="quern_cache_") as name:
    scratch = pathlib.Path(name)
    cache_folder, count = second_starts(scratch)
    places(scratch)
    reports(cache_folder, count)
    damage(cache_folder, count)
    tidying(cache_folder, count)
    two_at_once(scratch, count)
print(f"{count} kernels are kept, found, explained and verified")
