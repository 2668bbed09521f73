#!/usr/bin/env python3
"""quern profile --html, opened in headless Chromium: everything that was measured is on the page, lines of the stages
are linked as the data says, nothing is fetched, and text from files stays text. Without Chromium the page is only read.

  report_test.py QUERN SOURCE_DIR
"""

import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

QUERN, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = SOURCE / "models" / "addition.gguf"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--window-size=1600,1200", "--virtual-time-budget=8000"]
STAGES = ["hir", "mir", "kir", "llvm", "assembly"]


def stages_of(kernel):
    """Kernels that call tiles, and take some of the time, have these inside as well."""
    return [*STAGES, *(["tiles"] if "tiles" in kernel["stages"] else [])]


SKIPPED = 77
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)
        print(f"FAILED: {message}")


def report(model, out, *options):
    environment = dict(os.environ, XDG_CACHE_HOME=str(out.parent / "home"), QUERN_CACHE="off")
    result = subprocess.run([QUERN, "profile", str(model), "--prompt", "27+58=", "--repeat", "1", "--tokens", "4",
                             "--html", str(out), *options],
                            capture_output=True, text=True, env=environment, timeout=300)
    if result.returncode != 0:
        sys.exit(f"quern profile --html: {result.stderr}")
    return out.read_text()


class Page(html.parser.HTMLParser):
    """Elements as (tag, attributes), in order; text of elements with an id; lines of the stages; text of scripts."""

    VOID = {"meta", "br", "link", "img", "input", "hr"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.stages, self.scripts, self.stack = [], {}, {}, [], []
        self.stage = self.line = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in self.VOID:
            self.stack.append((tag, attributes.get("id")))
        attributes["within"] = [i for _, i in self.stack if i]
        self.elements.append((tag, attributes))
        classes = (attributes.get("class") or "").split()
        if "stage" in classes:
            self.stage = self.stages.setdefault(attributes["data-stage"], [])
        if "line" in classes:
            self.line = {"number": int(attributes["data-line"]), "classes": classes, "text": ""}
            self.stage.append(self.line)

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop()[0] != tag:
            pass
        self.line = None

    def handle_data(self, data):
        if self.stack and self.stack[-1][0] == "script":
            self.scripts.append((self.elements[-1][1], data))
        if self.line is not None:
            self.line["text"] += data
        for _, i in self.stack:
            if i:
                self.texts[i] = self.texts.get(i, "") + data

    def count(self, within, tag, kind=None):
        return sum(t == tag and within in a["within"] and (kind is None or kind in (a.get("class") or "").split())
                   for t, a in self.elements)


def open_in_browser(path, fragment=""):
    with tempfile.TemporaryDirectory() as profile:
        result = subprocess.run([CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--dump-dom",
                                 path.as_uri() + fragment],
                                capture_output=True, text=True, timeout=120)
    page = Page(result.stdout)
    root = next((a for t, a in page.elements if t == "html"), {})
    check(root.get("data-ready") == "true", f"{path.name}{fragment}: the page did not finish: {result.stderr[-500:]}")
    check("data-errors" not in root, f"{path.name}{fragment}: {root.get('data-errors')}")
    return page


def data_of(text):
    """What the page carries, read from its text without a browser."""
    scripts = [s for a, s in Page(text).scripts if a.get("id") == "profile"]
    check(len(scripts) == 1, f"{len(scripts)} blocks of data")
    return json.loads("".join(scripts))


def check_offline(text):
    page = Page(text)
    for tag, attributes in page.elements:
        for name in ("src", "href", "data", "action", "poster", "srcset", "xlink:href"):
            value = attributes.get(name)
            check(value is None or value.startswith("#"),
                  f"<{tag} {name}={value}> refers to something outside the file")
        check(tag not in ("link", "base", "iframe", "object", "embed", "img"), f"<{tag}> in the page")
    style = text[text.index("<style>"):text.index("</style>")]
    check("url(" not in style and "@import" not in style, "the style refers to other files")
    policy = [a["content"] for t, a in page.elements
              if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"]
    check(len(policy) == 1 and "default-src 'none'" in policy[0] and "connect-src" not in policy[0], f"policy {policy}")
    check("Redistribution and use" in text and "Mike Bostock" in text, "D3's licence is not in the file")


def check_data(data):
    check(data["schema"] == "quern.profile" and {s["phase"] for s in data["sections"]} == {"prefill", "decode"},
          "sections")
    for section in data["sections"]:
        for kernel in section["kernels"]:
            stages, name = kernel["stages"], kernel["symbol"]
            lines = {stage: stages[stage].get("text", kernel["kir"]).rstrip("\n").split("\n")
                     for stage in stages_of(kernel)}
            check(all(len(lines[stage]) > 2 for stage in ("mir", "kir", "llvm", "assembly")) and lines["hir"],
                  f"{name}: a stage is empty")
            for stage, leads in (("hir", "ops"), ("mir", "ops"), ("kir", "ops"),
                                 *((of, "kir_lines") for of in stages_of(kernel)[3:])):
                check(len(stages[stage][leads]) == len(lines[stage]),
                      f"{name}: {stage} has {len(lines[stage])} lines, {len(stages[stage][leads])} links")
            # Every statement that notes its op is linked to that op.
            for text, op in zip(lines["kir"], stages["kir"]["ops"]):
                note = re.search(r"@\[(.*)\]$", text)
                check((note is None) == (op < 0), f"{name}: {text!r} is linked to op {op}")
                check(note is None or kernel["origins"][op]["op"] == note.group(1),
                      f"{name}: {text!r} is linked to {kernel['origins'][op]}")
            for op in {op for op in stages["kir"]["ops"] if op >= 0}:
                check(any(op in ops for ops in stages["mir"]["ops"]),
                      f"{name}: no MIR line has {kernel['origins'][op]['op']}")
                check(any(op in ops for ops in stages["hir"]["ops"]),
                      f"{name}: no HIR line has {kernel['origins'][op]['op']}")
            for stage in stages_of(kernel)[3:]:
                reached = {line for line in stages[stage]["kir_lines"] if line > 0}
                check(reached and max(reached) <= len(lines["kir"]),
                      f"{name}: {stage} is linked to KIR lines {reached}")
            check("!dbg" not in stages["llvm"]["text"] and ".loc" not in stages["assembly"]["text"],
                  f"{name}: debug locations are left in")


def check_tiles(data):
    """Where a product calls a tile, and takes a twentieth of the time or more, the tile's code is there, in its lines.
    Which kernels take that much is as the profile says: beside other work it may be any of them for once."""
    shown = 0
    for section in data["sections"]:
        for kernel in section["kernels"]:
            name, stages = kernel["symbol"], kernel["stages"]
            often = kernel["wall_ns"] * 20 >= section["wall_ns"]
            calls = "qk_" in stages["assembly"]["text"]
            check(("tiles" in stages) == (often and calls), f"{name}: takes time {often}, calls tiles {calls}")
            dots = [n for n, line in enumerate(kernel["kir"].splitlines(), 1) if line.strip().startswith("dot_")]
            if "tiles" not in stages or not dots:
                continue
            tiles = stages["tiles"]
            check("call" not in tiles["text"] or "qk_dot" not in tiles["text"],
                  f"{name}: a tile is called where it should be inside")
            check(tiles["kir_lines"].count(dots[0]) > 20, f"{name}: the tile's code is not linked to its line")
            shown += 1
    check(shown > 0, "no product shows its tiles")


def expected_links(kernel, stage, number):
    """Lines by stage that belong to line `number` of `stage`, as docs/profiling.md says."""
    stages = kernel["stages"]
    kir_ops = stages["kir"]["ops"]

    def leads(of, index):  # ops, KIR line
        if of in ("hir", "mir"):
            return set(stages[of]["ops"][index]), None
        line = index + 1 if of == "kir" else stages[of]["kir_lines"][index]
        return ({kir_ops[line - 1]} if line > 0 and kir_ops[line - 1] >= 0 else set()), line

    ops, line = leads(stage, number - 1)
    links = {}
    for other in stages_of(kernel):
        links[other] = []
        for index in range(len(kir_ops if other == "kir"
                               else stages[other].get("ops", stages[other].get("kir_lines")))):
            other_ops, other_line = leads(other, index)
            same_line = line is not None and other_line is not None
            if (other, index + 1) == (stage,
                                      number) or (line == other_line and line > 0 if same_line else ops & other_ops):
                links[other].append(index + 1)
    return links


def check_page(page, data, index, name):
    section = data["sections"][index]
    check(page.count("kernels", "tr") == len(section["kernels"]) + 1,
          f"{name}: {page.count('kernels', 'tr') - 1} rows of kernels")
    check(page.count("blocks", "tr") == len(section["blocks"]) + 1, f"{name}: rows of blocks")
    points = sum(kernel["intensity"] > 0 and kernel["gflops"] > 0 for kernel in section["kernels"])
    check(page.count("roofline", "circle", "point") == points > 0,
          f"{name}: {page.count('roofline', 'circle', 'point')} points, {points} expected")
    check(page.count("roofline", "line", "roof") == len(data["machine"]["memory"]) + 2, f"{name}: roofs")
    values = sum(b["home"] == "arena" and b["offset"] >= 0 and b["first_launch"] >= 0 for b in section["buffers"])
    check(page.count("arena", "rect", "value") == values > 0,
          f"{name}: {page.count('arena', 'rect', 'value')} values in the arena, {values} expected")
    check("peak" in page.texts.get("arena-peak", ""), f"{name}: the arena has no peak")
    run = [run for run in data["timeline"] if run["section"] == index][-1]
    check(page.count("timeline", "rect", "slice") == len(run["slices"]) > 0, f"{name}: slices of the timeline")
    compiled = data["compile"]
    parts = len(compiled["steps"]) + len(compiled["variants"]) + sum(1 if k["loaded"] else 5
                                                                     for k in compiled["kernels"])
    check(page.count("compile", "rect", "slice") == parts, f"{name}: slices of compiling")
    check(page.count("compiled", "tr") == len(compiled["kernels"]) + 1, f"{name}: rows of compiled kernels")
    check(page.count("summary", "b") == 7, f"{name}: figures in the summary")


def check_kernel(path, data, section, kernel, stage, number):
    fragment = f"#section={section}&kernel={kernel}&stage={stage}&line={number}"
    page = open_in_browser(path, fragment)
    check_page(page, data, section, fragment)
    row = data["sections"][section]["kernels"][kernel]
    check(page.texts.get("stages-kernel") == row["symbol"], f"{fragment}: {page.texts.get('stages-kernel')} is shown")
    selected = [a.get("data-row") for t, a in page.elements if t == "tr" and "selected" in (a.get("class") or "")]
    check(selected == [str(kernel)], f"{fragment}: rows {selected} are selected")
    links = expected_links(row, stage, number)
    check(sum(len(lines) > 0 for lines in links.values()) >= 4, f"{fragment}: links {links}")
    for of in stages_of(row):
        text = row["stages"][of].get("text", row["kir"]).rstrip("\n").split("\n")
        shown = page.stages.get(of, [])
        check([line["text"] for line in shown] == text, f"{fragment}: the text of {of}")
        marked = [line["number"] for line in shown if "linked" in line["classes"]]
        check(marked == links[of], f"{fragment}: {of} lines {marked} are marked, {links[of]} expected")
        check(all("pinned" in line["classes"] for line in shown if "linked" in line["classes"]),
              f"{fragment}: {of} lines are marked but not pinned")


# What a reader does, one thing after another; what the page then shows is left in an attribute.
READER = """<script>
(async () => {
  const pause = () => new Promise((done) => setTimeout(done, 50));
  const all = (selector) => [...document.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);
  const fire = (element, type) => element.dispatchEvent(
      new MouseEvent(type, { bubbles: true, view: window, clientX: 400, clientY: 300 }));
  const marked = (kind) => Object.fromEntries(all(".stage").map((s) =>
      [s.dataset.stage, [...s.querySelectorAll(kind)].map((l) => Number(l.dataset.line))]));
  const result = {};
  const line = one("[data-stage=%STAGE%] [data-line='%LINE%']");
  fire(line, "mouseover");
  result.hover = marked(".linked"), result.hover_pinned = all(".pinned").length;
  line.closest(".lines").dispatchEvent(new MouseEvent("mouseleave"));
  result.left = all(".linked").length;
  fire(line, "click");
  await pause();
  result.click = marked(".pinned"), result.click_address = location.hash;
  const names = () => all("#kernels tbody tr td:first-child").map((td) => td.textContent);
  result.by_time = names();
  const calls = all("#kernels th").find((th) => th.textContent === "calls");
  fire(calls, "click");
  result.by_calls = all("#kernels tbody tr").map((tr) => Number(tr.dataset.row));
  fire(calls, "click");
  result.by_calls_up = all("#kernels tbody tr").map((tr) => Number(tr.dataset.row));
  const slice = one("#timeline .slice");
  fire(slice, "mousemove");
  result.tip = one("#tip").hidden ? "" : one("#tip").textContent;
  fire(slice, "mouseleave");
  result.tip_hidden = one("#tip").hidden;
  const group = slice.parentNode;
  result.whole = group.getAttribute("transform");
  fire(all("#timeline .zoom button")[0], "click");
  await pause();
  result.zoomed = group.getAttribute("transform");
  result.selected = {};
  const points = [["point", "#roofline .point"], ["slice", "#timeline .slice"], ["value", "#arena .value"]];
  for (const [name, selector] of points) {
    fire(one(selector), "click");
    await pause();
    result.selected[name] = [one(selector).dataset.kernel || null, location.hash, one("#stages-kernel").textContent];
  }
  fire(all("#sections button").find((b) => b.getAttribute("aria-pressed") === "false"), "click");
  await pause();
  result.section_address = location.hash, result.section_rows = names().length;
  document.documentElement.dataset.result = JSON.stringify(result);
})();
</script>
</body>"""


def check_reader(folder, text, data, section):
    """A mouse on the page: hovering, clicking, sorting, zooming."""
    kernels = data["sections"][section]["kernels"]
    # What the page begins with: a kernel that was disturbed may have more in all.
    slowest = max(range(len(kernels)), key=lambda k: kernels[k]["typical_ns"])
    number = line_with_links(kernels[slowest], "kir")
    path = folder / "reader.html"
    path.write_text(READER.replace("%STAGE%", "kir").replace("%LINE%", str(number)).join(text.rsplit("</body>", 1)))
    page = open_in_browser(path)
    root = next(a for t, a in page.elements if t == "html")
    check("data-result" in root, "the reader did not finish")
    result = json.loads(root.get("data-result", "{}"))
    if not result:
        return
    links = expected_links(kernels[slowest], "kir", number)
    check(result["hover"] == links and result["hover_pinned"] == 0,
          f"pointing at a line marks {result['hover']}, {links} expected")
    check(result["left"] == 0, "marks stay when the pointer leaves")
    check(result["click"] == links, f"a click pins {result['click']}, {links} expected")
    check(result["click_address"] == f"#section={section}&kernel={slowest}&stage=kir&line={number}",
          f"address {result['click_address']}")
    ranked = sorted(range(len(kernels)), key=lambda k: -kernels[k]["wall_ns"])
    check([name.split(" ")[0] for name in result["by_time"]] == [kernels[k]["symbol"] for k in ranked],
          "kernels are not sorted by time")
    check(result["by_calls"] == sorted(range(len(kernels)), key=lambda k: -kernels[k]["calls"]),
          f"by calls: {result['by_calls']}")
    check(result["by_calls_up"] == sorted(range(len(kernels)), key=lambda k: kernels[k]["calls"]),
          f"by calls, upwards: {result['by_calls_up']}")
    launch = data["sections"][section]["launches"][0]
    check(launch["label"] in result["tip"] and result["tip_hidden"], f"tip {result['tip']!r}")
    check("scale(1,1)" in result["whole"] and "scale(2,1)" in result["zoomed"],
          f"zoom from {result['whole']} to {result['zoomed']}")
    for name, (kernel, address, shown) in result["selected"].items():
        wanted = int(re.search(r"kernel=(\d+)", address).group(1))
        check(shown == kernels[wanted]["symbol"] and kernel in (None, str(wanted)),
              f"a click on a {name} selects {shown}, {address}")
    other = 1 - section
    check(result["section_address"] == f"#section={other}"
          and result["section_rows"] == len(data["sections"][other]["kernels"]), "the other section")


def line_with_links(kernel, stage):
    """A line of the stage that has the most to show: links to each other stage."""
    count = len(kernel["stages"][stage].get("ops", kernel["stages"][stage].get("kir_lines")))
    return max(range(1, count + 1),
               key=lambda n: sum(len(lines) > 0 for lines in expected_links(kernel, stage, n).values()))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "report.html"
        text = report(MODEL, path)
        check_offline(text)
        data = data_of(text)
        check_data(data)
        check_tiles(data)
        # A path whose parts together would end the data and start a script.
        hostile = folder / "a<!--<script>b<" / "script><script>report_error('broken out')<" / "script>\"'&lt;.gguf"
        hostile.parent.mkdir(parents=True)
        hostile.symlink_to(MODEL)
        hostile_path = folder / "hostile.html"
        hostile_text = report(hostile, hostile_path)
        check_offline(hostile_text)
        check(data_of(hostile_text)["model"] == str(hostile), "the path changed")
        if CHROMIUM is None:
            print("skipped: there is no chromium, so the page was read but not opened")
            return SKIPPED if not failures else 1
        first = open_in_browser(path)
        decode = next(i for i, section in enumerate(data["sections"]) if section["phase"] == "decode")
        check_page(first, data, decode, "at first")
        check(all(first.stages.get(stage) for stage in STAGES), "no kernel is shown at first")
        check(not [line for lines in first.stages.values() for line in lines if "linked" in line["classes"]],
              "lines are marked at first")
        for section, symbol, stage in ((0, "ffn", "kir"), (decode, "k_cache", "mir"),
                                       (decode, "attention_norm", "llvm"), (0, "output", "assembly"),
                                       (0, "attention", "hir")):
            kernels = data["sections"][section]["kernels"]
            kernel = next(k for k, row in enumerate(kernels) if symbol in row["symbol"])
            check_kernel(path, data, section, kernel, stage, line_with_links(kernels[kernel], stage))
        check_reader(folder, text, data, decode)
        page = open_in_browser(hostile_path)
        check(page.texts.get("title") == hostile.name, f"title {page.texts.get('title')!r}")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
