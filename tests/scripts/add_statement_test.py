#!/usr/bin/env python3
"""Adding a kind of statement takes the files that docs/kir.md lists, at most eight, and who forgets one is told.

    add_statement_test.py SOURCE_DIR BUILD_DIR

Copies of the listed files learn a kind. With all of them the sources compile; with all but one, that one does not. With
QUERN_LONG_TESTS=1 every source of src/kir and src/codegen is compiled, else those that the list is about.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

# What each file learns: where, and what stands there then.
NEW = {
    "src/kir/kir.h": [
        (r"(?=struct Stmt \{)", "// Looks at a value.\nstruct Probe {\n  ExprRef value;\n};\n"),
        (r"(?<=using Node = std::variant<Loop, )", "Probe, "),
    ],
    "src/kir/parts.h": [
        (r"(?=template <Is<Barrier> Node>)",
         "template <Is<Probe> Node>\nvoid Parts(Node& node, auto& visit) {\n  auto& [value] = node;\n"
         "  visit.Expr(value);\n}\n"),
    ],
    "src/kir/parse_stmt.cc": [
        (r"(?<=variant_size_v<Stmt::Node> == )\d+", lambda found: str(int(found[0]) + 1)),
        (r"(?=    if \(Is\(\"prefetch\"\)\))", "    if (Is(\"probe\")) return ReadProbe();\n"),
        (r"(?=  StatusOr<Nodes> ReadBarrier\(\))",
         "  StatusOr<Nodes> ReadProbe() {\n    Next();\n    QUERN_ASSIGN(ExprRef value, AnyExpr());\n"
         "    return Nodes{Probe{std::move(value)}};\n  }\n"),
    ],
    "src/kir/print.cc": [
        (r"(?=std::string Head\(const Barrier&\))",
         "std::string Head(const Probe& probe) { return \"probe \" + ExprText(probe.value, true); }\n"),
    ],
    "src/kir/verify.cc": [
        (r"(?=  Status CheckNode\(const Let& let\))",
         "  Status CheckNode(const Probe& probe) { return CheckExpr(probe.value); }\n"),
    ],
    "src/kir/interpret_stmt.cc": [
        (r"(?=  Status ReadStmt\(const Barrier&)",
         "  Status ReadStmt(const Probe& probe, Step& step) {\n    QUERN_ASSIGN(step.value, Read(probe.value));\n"
         "    return absl::OkStatus();\n  }\n"),
        (r"(?=\[\]\(const kir::Prefetch&\) \{\})", "[&](const kir::Probe&) { Evaluate(*step.value); },\n"),
    ],
    "src/kir/cost.cc": [
        (r"(?=\[&\]\(const Shuffle& n\) \{ Look)", "[&](const Probe& n) { Look(n.value, false); },\n"),
        (r"(?=\[&\]\(const Assign& n\) \{ Eval)", "[&](const Probe& n) { Eval(n.value, weight); },\n"),
    ],
    "src/codegen/statement_emitter.h": [
        (r"(?=  virtual void Emit\(const kir::Barrier&\))",
         "  virtual void Emit(const kir::Probe&) { Refuse(*statement_); }\n"),
    ],
}
# Where a header is compiled.
USERS = {"src/kir/parts.h": "src/kir/walk.cc", "src/codegen/statement_emitter.h": "src/codegen/text/text_statements.cc"}


def listed(source):
    with open(os.path.join(source, "docs/kir.md")) as f:
        section = re.search(r"\n## Adding a kind of statement\n(.*?)\n## ", f.read(), re.S)
    return re.findall(r"^\| `(src/[^`]+)`", section[1], re.M) if section else []


def learn(source, name):
    with open(os.path.join(source, name)) as f:
        text = f.read()
    for anchor, new in NEW[name]:
        text, places = re.subn(anchor, new, text)
        if places != 1:
            sys.exit(f"{name}: {places} places match {anchor}, where the test adds its kind")
    return text


def compile_with(source, folder, command, name):
    """Messages of the compiler about `name`, which may be one of the copies in `folder`; "" if there are none."""
    copy = os.path.join(folder, name)
    words = shlex.split(command["command"])
    first = next(i for i, word in enumerate(words) if word.endswith(("clang++-19", "clang++", "g++")))
    words = words[first:first + 1] + ["-I" + os.path.join(folder, "src"), "-fsyntax-only"] + words[first + 1:]
    at = words.index("-o")
    del words[at:at + 2]
    words[words.index("-c") + 1] = copy if os.path.exists(copy) else os.path.join(source, name)
    done = subprocess.run(words, cwd=command["directory"], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr or f"exit {done.returncode}"


def main():
    source, build = (os.path.realpath(p) for p in sys.argv[1:3])
    names = listed(source)
    if sorted(names) != sorted(NEW) or len(names) > 8:
        sys.exit(f"docs/kir.md lists {names} for a new kind of statement; this test adds one to {list(NEW)}")
    with open(os.path.join(build, "compile_commands.json")) as f:
        commands = {os.path.relpath(os.path.realpath(c["file"]), source): c for c in json.load(f)}
    units = {USERS.get(name, name) for name in names} - {"src/kir/kir.h"}
    everything = sorted(name for name in commands if name.startswith(("src/kir/", "src/codegen/")))
    all_units = everything if os.environ.get("QUERN_LONG_TESTS", "0") != "0" else sorted(units)
    with tempfile.TemporaryDirectory(prefix="quern_add_statement_") as work:

        def overlay(without):
            folder = os.path.join(work, os.path.basename(without or "all"))
            for name in names:
                if name != without:
                    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                    with open(os.path.join(folder, name), "w") as f:
                        f.write(learn(source, name))
            return folder

        complete = overlay(None)
        with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("QUERN_JOBS", "2"))) as pool:
            told = {name: pool.submit(compile_with, source, overlay(name), commands[USERS.get(name, name)],
                                      USERS.get(name, name)) for name in names if name != "src/kir/kir.h"}
            fine = {name: pool.submit(compile_with, source, complete, commands[name], name) for name in all_units}
        for name, result in fine.items():
            if result.result():
                sys.exit(f"{name} does not compile with one more kind of statement:\n{result.result()[:4000]}")
        for name, result in told.items():
            if not re.search(r"error: ", result.result()) or not re.search("Probe|kind of statement", result.result()):
                sys.exit(f"nobody tells that {name} lacks a kind of statement:\n{result.result()[:4000]}")
    print(f"one more kind of statement in {len(names)} files: {len(fine)} sources compile; "
          f"each of {len(told)} is told when it forgets")


if __name__ == "__main__":
    main()
