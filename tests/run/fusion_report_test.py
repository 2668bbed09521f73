#!/usr/bin/env python3
"""What the fusion report says of the graphs in bench/graphs: no product of theirs is plain loops, and no matrix of
windows lies in memory; of a product that has no other form it says so. Attention in ops is recognised.

  fusion_report_test.py QUERN SOURCE_DIR
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

QUERN, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])


def fused(path):
    """The graph of a file after fusion, and the lines of the report."""
    ran = subprocess.run([QUERN, "dump", "--stage", "mir", str(path)], capture_output=True, text=True,
                         env=dict(os.environ, QUERN_CACHE="off"), timeout=120)
    assert ran.returncode == 0, (path, ran.stderr)
    graph, _, report = ran.stdout.rpartition("\n}\n")
    return graph, report.splitlines()


def main():
    graphs = sorted((SOURCE / "bench" / "graphs").glob("*.qir"))
    assert len(graphs) > 100, graphs
    convolutions = 0
    for path in graphs:
        graph, report = fused(path)
        # Attention in ops is found, and becomes one where that is faster.
        found = [line for line in report if "recognised: attention at MatMul" in line]
        assert len(found) == path.name.startswith("attnprim"), (path.name, found)
        left = [line for line in found if line.startswith("not") and "faster as they are" in line]
        assert len(left) == (path.name == "attnprim_12x64_s128.qir"), (path.name, found)
        plain = [line for line in report if "plain loops" in line]
        assert not plain, (path.name, plain)
        # Outside of regions a line of a graph has two spaces before it.
        made = [line for line in graph.splitlines() if re.match(r"  %\d+ = Window", line)]
        assert not made, (path.name, made)
        for line in report:
            ops = line.partition(": ")[2].partition(",")[0].split()
            if line.startswith("region") and "Window" in ops:
                convolutions += 1
                assert {"MatMul", "MatMulPanels", "Reduce"} & set(ops), (path.name, line)
    assert convolutions > 50, convolutions
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "integers.qir"
        path.write_text("""graph integers {
  %0 = Input() {name = "a"} : i32[33, 65]
  %1 = Input() {name = "b"} : i32[65, 17]
  %2 = MatMul(%0, %1) {transpose_b = false} : i32[33, 17]
  return %2
}
""")
        report = fused(path)[1]
        assert any("plain loops: i32 x i32, 33 rows by 17 columns over 65" in line for line in report), report
    print(f"{len(graphs)} graphs, {convolutions} regions of windows")


main()
