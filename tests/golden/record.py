#!/usr/bin/env python3
"""Records what ONNX Runtime and PyTorch make of random contractions: the archive that golden_test reads.

  record.py [FOLDER]      writes NAME.txt and NAME.f32 of every family into FOLDER, this one when not given

Needs numpy, onnx, onnxruntime and torch, which neither a build nor a test does. A text file has a graph a case, in text
form after a line "case seed SEED values COUNT"; the f32 file has the outputs one after the other, little-endian. Inputs
and weights are not stored: element i of the leaf called n is value(seed, n, i), here and in the test. A case is kept
when both systems agree to 1e-5 of the row's scale; where ONNX Runtime refuses one (output padding as large as the
stride), PyTorch speaks alone, and the last line of each family says of how many. Cases are the same in every run;
outputs may differ in their last places with other versions of the two.
"""

import math
import pathlib
import random
import sys

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state as native

PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37]
LEAST_VALUES, MOST_VALUES = 24, 900
AGREE = 1e-5


def value(seed, name, count):
    """Elements 0 to count of a leaf, in -1..1; a 32-bit mix of the index."""
    x = (np.arange(count, dtype=np.uint64) * 2654435761 + (seed * 131 + ord(name[0])) * 40503) & 0xffffffff
    x ^= x >> 15
    x = (x * 2246822519) & 0xffffffff
    x ^= x >> 13
    return ((x >> 8).astype(np.float32) * np.float32(2.0 ** -23)) - np.float32(1)


def leaf(seed, name, shape):
    return value(seed, name, math.prod(shape)).reshape(shape)


def run_onnx(nodes, leaves, constants=()):
    """The output of the last node, from leaves {name: array} and constants of the same form; None where ONNX Runtime
    says that it does not compute this."""
    def info(name, array):
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        return helper.make_tensor_value_info(name, kind, array.shape)

    out = nodes[-1].output[0]
    graph = helper.make_graph(nodes, "g", [info(*item) for item in leaves.items()],
                              [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)],
                              [onnx.numpy_helper.from_array(np.asarray(array), name)
                               for name, array in dict(constants).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, leaves)[0]
    except (native.Fail, native.InvalidArgument, native.NotImplemented, native.RuntimeException):
        return None


def agree(a, b):
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    scale = np.maximum(np.abs(a).max(axis=-1, keepdims=True) if a.ndim else np.abs(a), np.sqrt((a * a).mean()))
    return bool((np.abs(a - b) <= AGREE * scale).all())


class Text:
    """A graph in text form, line by line."""

    def __init__(self):
        self.lines, self.shapes = [], []

    def add(self, op, dims, dtype="f32", **attributes):
        def text(v):
            if isinstance(v, bool):
                return "true" if v else "false"
            if isinstance(v, tuple):
                return "<" + ", ".join(map(str, v)) + ">"
            return f'"{v}"' if isinstance(v, str) else str(v)

        words = ", ".join(f"{k} = {text(v)}" for k, v in sorted(attributes.items()))
        braces = f" {{{words}}}" if words else ""
        self.lines.append(f"  %{len(self.lines)} = {op}{braces} : {dtype}[{', '.join(map(str, dims))}]")
        self.shapes.append(list(dims))
        return len(self.lines) - 1

    def leaf(self, name, shape, param=False):
        return self.add("Param()" if param else "Input()", shape, name=name)

    def constant(self, number):
        self.lines.append(f"  %{len(self.lines)} = Constant() hex {np.float32(number).tobytes().hex()} : f32[]")
        self.shapes.append([])
        return len(self.lines) - 1

    def bools(self, array):
        dims = ", ".join(map(str, array.shape))
        data = array.astype(np.uint8).tobytes().hex()
        self.lines.append(f"  %{len(self.lines)} = Constant() hex {data} : bool[{dims}]")
        self.shapes.append(list(array.shape))
        return len(self.lines) - 1

    def whole(self, name):
        return "\n".join([f"graph {name} {{", *self.lines, f"  return %{len(self.lines) - 1}", "}"])


def spatial_case(draw, transposed=False):
    """Attributes and shapes of a convolution, with distinct extents."""
    n = draw.choice([1, 2, 2, 2, 3])
    groups = draw.choice([1, 1, 1, 2, 3, 5])
    each = draw.choice([1, 2, 3, 7, 16, 17] if groups == 1 else [1, 1, 2, 5])
    results = draw.choice([1, 3, 8, 16, 19, 33] if groups == 1 else [1, 1, 2, 7])
    extents = draw.sample(PRIMES[1:9] if n < 3 else PRIMES[1:5], n)
    case = {
        "x": [draw.choice([1, 1, 2, 3]), groups * each] + extents,
        "w": [groups * results, each] if not transposed else [groups * each, results],
        "m": groups * results,
        "groups": groups,
        "strides": [draw.choice([1, 1, 2, 3]) for _ in range(n)],
        "dilations": [draw.choice([1, 1, 1, 2, 3]) for _ in range(n)],
        "kernel": [draw.choice([1, 2, 3, 3, 4, 5, 7]) for _ in range(n)],
        "bias": draw.random() < 0.5,
        "param": draw.random() < 0.6,
    }
    case["w"] += case["kernel"]
    case["pads"] = [draw.randint(0, max(k - 1, 1)) for k in case["kernel"] * 2]
    return case


def span(case, d):
    """Elements from the first of a window to its last."""
    return case["dilations"][d] * (case["kernel"][d] - 1) + 1


def leaves_of(case, seed):
    leaves = {"x": leaf(seed, "x", case["x"]), "w": leaf(seed, "w", case["w"])}
    if case["bias"]:
        leaves["b"] = leaf(seed, "b", [case["m"]])
    return leaves


def conv_text(op, case, shape, **attributes):
    text = Text()
    operands = [text.leaf("x", case["x"]), text.leaf("w", case["w"], case["param"])]
    if case["bias"]:
        operands.append(text.leaf("b", [case["m"]], case["param"]))
    names = ", ".join(f"%{o}" for o in operands)
    text.add(f"{op}({names})", shape, strides=case["strides"], pads=case["pads"], dilations=case["dilations"],
             groups=case["groups"], **attributes)
    return text


def conv(draw, seed):
    case = spatial_case(draw)
    n = len(case["kernel"])
    out = [(case["x"][2 + d] + case["pads"][d] + case["pads"][n + d] - span(case, d)) // case["strides"][d] + 1
           for d in range(n)]
    shape = [case["x"][0], case["m"], *out]
    if min(out) < 1 or not LEAST_VALUES <= math.prod(shape) <= MOST_VALUES:
        return None
    leaves = leaves_of(case, seed)
    ours = run_onnx([helper.make_node("Conv", list(leaves), ["y"], kernel_shape=case["kernel"], pads=case["pads"],
                                      strides=case["strides"], dilations=case["dilations"], group=case["groups"])],
                    leaves)
    t = {name: torch.from_numpy(array) for name, array in leaves.items()}
    padded = F.pad(t["x"], [p for d in reversed(range(n)) for p in (case["pads"][d], case["pads"][n + d])])
    theirs = (F.conv1d, F.conv2d, F.conv3d)[n - 1](padded, t["w"], t.get("b"), case["strides"], 0,
                                                   case["dilations"], case["groups"])
    return [conv_text("Conv", case, shape)], ours, theirs.numpy()


def conv_transpose(draw, seed):
    case = spatial_case(draw, transposed=True)
    n = len(case["kernel"])
    extra = [draw.randint(0, max(case["strides"][d], case["dilations"][d]) - 1) for d in range(n)]
    full = [(case["x"][2 + d] - 1) * case["strides"][d] + span(case, d) + extra[d] for d in range(n)]
    out = [full[d] - case["pads"][d] - case["pads"][n + d] for d in range(n)]
    shape = [case["x"][0], case["m"], *out]
    if min(out) < 1 or not LEAST_VALUES <= math.prod(shape) <= MOST_VALUES:
        return None
    leaves = leaves_of(case, seed)
    ours = run_onnx([helper.make_node("ConvTranspose", list(leaves), ["y"], kernel_shape=case["kernel"],
                                      pads=case["pads"], strides=case["strides"], dilations=case["dilations"],
                                      group=case["groups"], output_padding=extra)], leaves)
    t = {name: torch.from_numpy(array) for name, array in leaves.items()}
    whole = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1](
        t["x"], t["w"], t.get("b"), case["strides"], 0, extra, case["groups"], case["dilations"])
    for d in range(n):  # pads are what is cut off
        whole = whole.narrow(2 + d, case["pads"][d], out[d])
    return [conv_text("ConvTranspose", case, shape, output_padding=extra)], ours, whole.contiguous().numpy()


def windows(x, case, out, fill):
    """x [N, C, sp..] as windows [N, C, out.., k..]; cells outside of it are `fill`."""
    n = len(out)
    pads = []
    for d in reversed(range(n)):
        reach = (out[d] - 1) * case["strides"][d] + span(case, d)
        pads += [case["pads"][d], max(reach - case["pads"][d] - x.shape[2 + d], 0)]
    x = F.pad(x, pads, value=fill)
    for d in range(n):
        x = x.unfold(2 + d, span(case, d), case["strides"][d])[..., ::case["dilations"][d]].narrow(2 + d, 0, out[d])
    return x


def pool(draw, seed):
    case = spatial_case(draw)
    n = len(case["kernel"])
    case["x"][1] = draw.choice([1, 2, 3, 7, 17])
    case["pads"] = [draw.randint(0, k - 1) for k in case["kernel"] * 2]
    mean, ceil, counted = draw.random() < 0.5, draw.random() < 0.5, draw.random() < 0.5
    out = []
    for d in range(n):
        room = case["x"][2 + d] + case["pads"][d] + case["pads"][n + d] - span(case, d)
        if room < 0:
            return None
        windows_ = (-(-room // case["strides"][d]) if ceil else room // case["strides"][d]) + 1
        if ceil and (windows_ - 1) * case["strides"][d] >= case["x"][2 + d] + case["pads"][d]:
            windows_ -= 1  # it would start in the padding at the end
        out.append(windows_)
    shape = [*case["x"][:2], *out]
    if not LEAST_VALUES <= math.prod(shape) <= MOST_VALUES:
        return None
    x = leaf(seed, "x", case["x"])
    if not mean and draw.random() < 0.3:
        x = x - 2  # all below what padding might be taken for
    attributes = {"kernel_shape": case["kernel"], "pads": case["pads"], "strides": case["strides"],
                  "dilations": case["dilations"], "ceil_mode": int(ceil)}
    if mean:
        attributes["count_include_pad"] = int(counted)
    t = torch.from_numpy(x)
    axes = list(range(-n, 0))
    if mean:
        inside = torch.ones_like(t)
        if counted:  # cells of the padding that there is, none beyond it
            inside = F.pad(inside, [p for d in reversed(range(n)) for p in (case["pads"][d], case["pads"][n + d])],
                           value=1.0)
            whole = dict(case, pads=[0] * (2 * n))
            cells = windows(inside, whole, out, 0.0).sum(axes)
        else:
            cells = windows(inside, case, out, 0.0).sum(axes)
        if (cells == 0).any():
            return None
        theirs = windows(t, case, out, 0.0).sum(axes) / cells
    else:
        theirs = windows(t, case, out, -math.inf).amax(axes)
        if torch.isinf(theirs).any():
            return None
    ours = run_onnx([helper.make_node("AveragePool" if mean else "MaxPool", ["x"], ["y"], **attributes)], {"x": x})
    below = bool((x < -1).any())
    text = Text()
    source = text.leaf("x", case["x"])
    if below:
        source = text.add(f"Sub(%{source}, %{text.constant(2)})", case["x"])
    words = {"kind": "mean" if mean else "max", "kernel": case["kernel"], "strides": case["strides"],
             "pads": case["pads"], "dilations": case["dilations"], "ceil": ceil}
    if mean:
        words["count_include_pad"] = counted
    text.add(f"Pool(%{source})", shape, **words)
    return [text], ours, theirs.contiguous().numpy()


def einsum(draw, seed):
    batch, contract = draw.choice([0, 0, 1, 1, 2]), draw.choice([0, 1, 1, 1, 2, 2, 3])
    left, right = draw.choice([0, 1, 1, 2]), draw.choice([0, 1, 1, 2])
    count = batch + contract + left + right
    if count > 8:
        return None
    letters = "abcdefgh"[:count]
    size = dict(zip(letters, draw.sample(PRIMES[:10] if count < 5 else PRIMES[:8], count)))
    kinds = {"b": letters[:batch], "c": letters[batch:batch + contract],
             "l": letters[batch + contract:batch + contract + left], "r": letters[batch + contract + left:]}
    lhs = draw.sample(kinds["b"] + kinds["c"] + kinds["l"], batch + contract + left)
    rhs = draw.sample(kinds["b"] + kinds["c"] + kinds["r"], batch + contract + right)
    result = draw.sample(kinds["b"] + kinds["l"] + kinds["r"], batch + left + right)
    extent = lambda names: [size[c] for c in names]
    if not lhs or not rhs or not LEAST_VALUES <= math.prod(extent(result)) <= MOST_VALUES:
        return None
    if max(math.prod(extent(lhs)), math.prod(extent(rhs))) > 40000:
        return None
    equation = f"{''.join(lhs)},{''.join(rhs)}->{''.join(result)}"
    leaves = {"x": leaf(seed, "x", extent(lhs)), "w": leaf(seed, "w", extent(rhs))}
    ours = run_onnx([helper.make_node("Einsum", ["x", "w"], ["y"], equation=equation)], leaves)
    theirs = torch.einsum(equation, torch.from_numpy(leaves["x"]), torch.from_numpy(leaves["w"]))
    param = draw.random() < 0.5

    def start():
        text = Text()
        return text, text.leaf("x", extent(lhs)), text.leaf("w", extent(rhs), param)

    def turn(text, x, names, wanted):
        if names == wanted:
            return x
        return text.add(f"Transpose(%{x})", extent(wanted), perm=[names.index(c) for c in wanted])

    def shaped(text, x, shape):
        return x if text.shapes[x] == shape else text.add(f"Reshape(%{x})", shape, shape=tuple(shape))

    # As one product: rows and columns gathered, and the result turned.
    text, x, w = start()
    b, c, l, r = (draw.sample(kinds[k], len(kinds[k])) for k in "bclr")
    x = shaped(text, turn(text, x, lhs, b + l + c), extent(b) + [math.prod(extent(l)), math.prod(extent(c))])
    w = shaped(text, turn(text, w, rhs, b + c + r), extent(b) + [math.prod(extent(c)), math.prod(extent(r))])
    y = text.add(f"MatMul(%{x}, %{w})", extent(b) + [math.prod(extent(l)), math.prod(extent(r))])
    turn(text, shaped(text, y, extent(b + l + r)), b + l + r, result)
    # As it is said: dims by their places.
    general, x, w = start()
    b, c = draw.sample(kinds["b"], batch), draw.sample(kinds["c"], contract)
    left_free, right_free = [d for d in lhs if d in kinds["l"]], [d for d in rhs if d in kinds["r"]]
    y = general.add(f"DotGeneral(%{x}, %{w})", extent(b + left_free + right_free),
                    lhs_batch=[lhs.index(d) for d in b], rhs_batch=[rhs.index(d) for d in b],
                    lhs_contract=[lhs.index(d) for d in c], rhs_contract=[rhs.index(d) for d in c])
    turn(general, y, b + left_free + right_free, result)
    return [text, general], ours, theirs.contiguous().numpy()


def attention(draw, seed):
    groups, kv_heads = draw.choice([1, 1, 2, 3]), draw.choice([1, 1, 2, 3])
    heads, head_dim = groups * kv_heads, draw.choice([4, 8, 13, 16, 24, 32, 40, 64])
    batch, sq = draw.choice([1, 1, 2, 3]), draw.choice([1, 1, 2, 3, 5, 7, 11])
    sk = draw.choice([p for p in [*PRIMES, 41, 67] if p >= sq])
    layout = draw.choice(["packed", "bshd", "bhsd"])
    mask = draw.choice(["none", "causal", "sliding", "custom", "bias"])
    scale = draw.choice([0.0, 0.0, 0.25, 0.0625])
    softcap = draw.choice([0.0, 0.0, 0.0, 2.5])
    window = draw.choice([0, 1, 4]) if mask == "sliding" else 0
    if not LEAST_VALUES <= batch * heads * sq * head_dim <= MOST_VALUES:
        return None

    def shape_of(positions, count):
        return {"packed": [batch, positions, count * head_dim], "bshd": [batch, positions, count, head_dim],
                "bhsd": [batch, count, positions, head_dim]}[layout]

    def split(array, positions, count):
        array = array.reshape([batch, count, positions, head_dim] if layout == "bhsd" else
                              [batch, positions, count, head_dim])
        return np.ascontiguousarray(array if layout == "bhsd" else array.transpose(0, 2, 1, 3))

    shapes = {"q": shape_of(sq, heads), "k": shape_of(sk, kv_heads), "v": shape_of(sk, kv_heads)}
    q, k, v = (split(leaf(seed, name, shapes[name]), sq if name == "q" else sk, heads if name == "q" else kv_heads)
               for name in "qkv")
    at, j = np.arange(sq)[:, None] + sk - sq, np.arange(sk)[None, :]
    seen = np.ones((1, 1, sq, sk), bool)
    added = np.zeros((1, 1, 1, 1), np.float32)
    if mask == "causal":
        seen = (j <= at)[None, None]
    elif mask == "sliding":
        seen = ((j <= at) & (j >= at - window))[None, None]
    elif mask == "custom":
        shapes["m"] = [batch, sk]
        seen = np.broadcast_to((leaf(seed, "m", shapes["m"]) >= 0.5)[:, None, None, :], (batch, 1, sq, sk))
        if not seen.any(axis=-1).all():
            return None
    elif mask == "bias":
        full = [batch, heads, sq, sk]
        shapes["m"] = [extent if draw.random() < 0.6 else 1 for extent in full]
        added = leaf(seed, "m", shapes["m"])
    bias = np.where(seen, np.float32(0), np.float32(-np.inf)) + added
    bias = np.ascontiguousarray(np.broadcast_to(bias, (batch, heads, sq, sk)).astype(np.float32))
    factor = scale or 1 / math.sqrt(head_dim)

    t = [torch.from_numpy(a) for a in (q, k, v, bias)]
    if softcap == 0:
        theirs = F.scaled_dot_product_attention(t[0], t[1], t[2], attn_mask=t[3], scale=factor, enable_gqa=groups > 1)
    else:
        wide = [a.repeat_interleave(groups, 1) for a in t[1:3]]
        s = softcap * torch.tanh(t[0] @ wide[0].transpose(2, 3) * factor / softcap)
        theirs = torch.softmax(s + t[3], -1) @ wide[1]
    feeds = {"q": q, "k": k, "v": v, "m": bias}
    if softcap == 0:
        ours = run_onnx([helper.make_node("Attention", ["q", "k", "v", "m"], ["y"], scale=factor)], feeds)
    else:
        # As ops: versions of ONNX's Attention differ in whether the mask is added before the cap.
        feeds["k"], feeds["v"] = np.repeat(k, groups, axis=1), np.repeat(v, groups, axis=1)
        node = helper.make_node
        ours = run_onnx([node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), node("MatMul", ["q", "kt"], ["s"]),
                         node("Mul", ["s", "f"], ["sf"]), node("Tanh", ["sf"], ["st"]),
                         node("Mul", ["st", "c"], ["sc"]), node("Add", ["sc", "m"], ["sm"]),
                         node("Softmax", ["sm"], ["p"], axis=-1),
                         node("MatMul", ["p", "v"], ["y"])], feeds,
                        {"f": np.float32(factor / softcap), "c": np.float32(softcap)})
    if layout != "bhsd":
        ours, theirs = ours.transpose(0, 2, 1, 3), theirs.transpose(1, 2)
    text = Text()
    operands = [text.leaf(name, shape) for name, shape in shapes.items()]
    words = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "mask": mask, "layout": layout}
    words.update({name: word for name, word in (("scale", scale), ("softcap", softcap), ("window", window)) if word})
    text.add(f"Attention({', '.join(f'%{o}' for o in operands)})", shapes["q"], **words)
    sizes = {"batch": batch, "kv_heads": kv_heads, "groups": groups, "sq": sq, "sk": sk, "head_dim": head_dim}
    spelled = attention_ops(random.Random(seed), shapes, sizes, layout, mask, seen, factor, softcap)
    return [text, spelled], ours.reshape(shapes["q"]), theirs.reshape(shapes["q"]).numpy()


def attention_ops(draw, shapes, sizes, layout, mask, seen, factor, softcap):
    """The same spelled out: heads turned and copied, two products, and a softmax between."""
    batch, kv_heads, groups, sq, sk, d = (sizes[k] for k in ("batch", "kv_heads", "groups", "sq", "sk", "head_dim"))
    heads = groups * kv_heads
    text = Text()
    leaves = {name: text.leaf(name, shape) for name, shape in shapes.items()}

    def split(x, positions, count):
        if layout == "bhsd":
            return x
        if layout == "packed":
            x = text.add(f"Reshape(%{x})", [batch, positions, count, d], shape=(batch, positions, count, d))
        return text.add(f"Transpose(%{x})", [batch, count, positions, d], perm=[0, 2, 1, 3])

    def copied(x):
        if groups == 1:
            return x
        one, all_of, whole = (batch, kv_heads, 1, sk, d), (batch, kv_heads, groups, sk, d), (batch, heads, sk, d)
        x = text.add(f"Reshape(%{x})", list(one), shape=one)
        x = text.add(f"Expand(%{x})", list(all_of), shape=all_of)
        return text.add(f"Reshape(%{x})", list(whole), shape=whole)

    q = split(leaves["q"], sq, heads)
    k, v = (copied(split(leaves[name], sk, kv_heads)) for name in "kv")
    factor = factor / softcap if softcap else factor
    early = draw.random() < 0.3
    if early:
        q = text.add(f"Mul(%{q}, %{text.constant(factor)})", [batch, heads, sq, d])
    k = text.add(f"Transpose(%{k})", [batch, heads, d, sk], perm=[0, 1, 3, 2])
    full = [batch, heads, sq, sk]
    s = text.add(f"MatMul(%{q}, %{k})", full)
    if not early:
        op, number = draw.choice([("Mul", factor), ("Div", 1 / factor)])
        s = text.add(f"{op}(%{s}, %{text.constant(number)})", full)
    if softcap:
        s = text.add(f"Tanh(%{s})", full)
        s = text.add(f"Mul(%{s}, %{text.constant(softcap)})", full)
    if mask == "bias":
        s = text.add(f"Add(%{s}, %{leaves['m']})", full)
    elif mask != "none":
        if mask == "custom":
            shown = text.add(f"Ge(%{leaves['m']}, %{text.constant(0.5)})", [batch, sk], "bool")
            shown = text.add(f"Reshape(%{shown})", [batch, 1, 1, sk], "bool", shape=(batch, 1, 1, sk))
        else:
            shown = text.bools(seen)
        s = text.add(f"Where(%{shown}, %{s}, %{text.constant(-math.inf)})", full)
    p = text.add(f"Softmax(%{s})", full, axis=-1)
    y = text.add(f"MatMul(%{p}, %{v})", [batch, heads, sq, d])
    if layout != "bhsd":
        y = text.add(f"Transpose(%{y})", [batch, sq, heads, d], perm=[0, 2, 1, 3])
    if layout == "packed":
        text.add(f"Reshape(%{y})", shapes["q"], shape=tuple(shapes["q"]))
    return text


# Family: cases, and how one is drawn: graphs, ONNX Runtime's outputs, PyTorch's. Files are named as the graphs are.
FAMILIES = {
    "conv": (150, conv, ["conv"]),
    "conv_transpose": (100, conv_transpose, ["conv_transpose"]),
    "pool": (100, pool, ["pool"]),
    "einsum": (150, einsum, ["einsum_products", "einsum_dot_general"]),
    "attention": (100, attention, ["attention", "attention_ops"]),
}


def record(folder, name):
    count, draw_case, files = FAMILIES[name]
    draw = random.Random(f"quern {name}")
    texts, outputs, seed, disagreed, alone = [[] for _ in files], [], 0, 0, 0
    while len(outputs) < count:
        seed += 1
        case = draw_case(draw, seed)
        if case is None:
            continue
        graphs, ours, theirs = case
        if ours is not None and not agree(ours, theirs):
            disagreed += 1
            continue
        alone += ours is None
        kept = theirs if ours is None else ours
        for text, graph in zip(texts, graphs):
            text.append(f"case seed {seed} values {kept.size}\n{graph.whole(f'{name}_{len(outputs)}')}\n")
        outputs.append(kept.astype("<f4").ravel())
    for file, text in zip(files, texts):
        (folder / f"{file}.txt").write_text("\n".join(text))
    (folder / f"{name}.f32").write_bytes(np.concatenate(outputs).tobytes())
    print(f"{name}: {count} cases, {sum(o.size for o in outputs)} values, {alone} of PyTorch alone; left out: "
          f"{disagreed} on which the two differ")


if __name__ == "__main__":
    torch.set_num_threads(1)
    where = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    for family in FAMILIES:
        record(where, family)
