#!/usr/bin/env python3
"""Does what a page of docs/ says, word for word, and looks whether that gives what the page shows.

  tutorial_test.py BUILD ROOT PAGE

In the page a block ```sh is run as one script; ```c NAME and the like are written to that file; ```output is what the
script before it has to print, in order, where ... stands for anything, within a line or for lines. Other blocks are for
the reader. The scripts run in a folder where build, models, include and the other folders of the checkout are links.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUILD, ROOT, PAGE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)


def pattern_of(shown):
    """Shown lines as a regular expression; a line of ... alone may be any number of lines."""
    parts = []
    for line in shown.strip("\n").split("\n"):
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(re.escape(piece) for piece in line.split("...")) + r"\s*\n")
    return re.compile("^" + "".join(parts), re.M)


def main():
    text = (ROOT / "docs" / PAGE).read_text()
    scripts = checked = 0
    with tempfile.TemporaryDirectory(prefix="quern_tutorial_") as name:
        folder = pathlib.Path(name)
        for link in ("models", "include", "examples", "cmake", "src"):
            (folder / link).symlink_to(ROOT / link)
        (folder / "build").symlink_to(BUILD)
        printed = ""
        for kind, target, body in BLOCK.findall(text):
            if target:
                (folder / target).write_text(body)
            elif kind == "sh":
                result = subprocess.run(["bash", "-euo", "pipefail", "-c", body], cwd=folder, capture_output=True,
                                        text=True, timeout=500)
                if result.returncode != 0:
                    sys.exit(f"docs/{PAGE}: this fails with status {result.returncode}:\n{body}\n"
                             f"{result.stdout[-3000:]}{result.stderr[-3000:]}")
                printed = result.stdout
                scripts += 1
            elif kind == "output":
                if not pattern_of(body).search(printed):
                    sys.exit(f"docs/{PAGE}: it does not print this:\n{body}\nbut\n{printed[:6000]}")
                checked += 1
        left = sorted(path.name for path in folder.iterdir() if not path.is_symlink())
    if scripts == 0 or checked == 0:
        sys.exit(f"docs/{PAGE} has no script and output to try")
    print(f"docs/{PAGE}: {scripts} scripts run, {checked} outputs as shown; made {', '.join(left)}")


main()
