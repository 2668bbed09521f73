#!/usr/bin/env python3
"""Records the plain ops and the gradients: plain.txt and plain.bin, which golden_test reads.

  record_plain.py [FOLDER]    writes into FOLDER, this one when not given

Elementwise functions and moves by numpy and scipy in double; gradients, and what is fused, by PyTorch's autograd in
double. Needs numpy, scipy, torch, and onnx and onnxruntime of record_ops.py, which says how the files are written.
"""

import pathlib
import sys

import numpy as np
import scipy.special
import torch
import torch.nn.functional as F
from record_ops import INF, NAN, wave
from record_sequence import Sequences

EDGES = np.array([0.0, -0.0, 1, -1, 20, -20, 88, -88, 1e-20, -1e-20, 0.5, -0.5, 2.5, -2.5, INF, -INF, NAN])
EXACT = {np.float32: 0, np.float64: 0, np.float16: 0}
CLOSE = {np.float32: 3e-6, np.float64: 4e-13, np.float16: 2e-3}


def quiet(function):
    def run(*xs):
        with np.errstate(all="ignore"):
            return function(*xs)
    return run


def sigmoid(x):
    return scipy.special.expit(x)


def torch_of(function):
    return lambda x: function(torch.tensor(x)).numpy()


UNARY = {
    "Abs": (np.abs, EXACT), "Neg": (np.negative, EXACT), "Ceil": (np.ceil, EXACT), "Floor": (np.floor, EXACT),
    "Relu": (lambda x: np.where(x < 0, 0, x), EXACT), "Recip": (lambda x: 1 / x, CLOSE), "Sqrt": (np.sqrt, CLOSE),
    "Rsqrt": (lambda x: 1 / np.sqrt(x), CLOSE), "Exp": (np.exp, CLOSE), "Exp2": (np.exp2, CLOSE),
    "Expm1": (np.expm1, CLOSE), "Log": (np.log, CLOSE), "Log1p": (np.log1p, CLOSE), "Log2": (np.log2, CLOSE),
    "Sin": (np.sin, CLOSE), "Cos": (np.cos, CLOSE), "Erf": (scipy.special.erf, CLOSE), "Sigmoid": (sigmoid, CLOSE),
    "Silu": (torch_of(F.silu), CLOSE), "Gelu": (torch_of(F.gelu), CLOSE),
    "GeluApprox": (torch_of(lambda x: F.gelu(x, approximate="tanh")), CLOSE), "Mish": (torch_of(F.mish), CLOSE),
    "Softplus": (lambda x: np.logaddexp(0, x), CLOSE), "Softsign": (torch_of(F.softsign), CLOSE),
    "LogSigmoid": (torch_of(F.logsigmoid), CLOSE), "HardSwish": (torch_of(F.hardswish), CLOSE),
}
BINARY = {"Max": np.maximum, "Min": np.minimum, "Atan2": np.arctan2, "Pow": np.power, "Mod": np.mod}
COMPARISONS = {"Eq": np.equal, "Ne": np.not_equal, "Lt": np.less, "Le": np.less_equal, "Gt": np.greater}
INTEGERS = {"BitAnd": np.bitwise_and, "BitOr": np.bitwise_or, "BitXor": np.bitwise_xor}


def elementwise(archive):
    for turn, (op, (function, rtol)) in enumerate(UNARY.items()):
        for dtype in (np.float32, np.float64, np.float16):
            x = np.concatenate([EDGES, wave((37,), turn, -9, 9), wave((31,), turn + 1, -0.3, 0.3)]).astype(dtype)
            if op in ("Gelu", "GeluApprox", "Mish", "Silu", "LogSigmoid", "Erf") and dtype == np.float64:
                x = x[~(np.abs(x) > 5)]  # tails: PyTorch's own cancel there
            made = quiet(function)(x.astype(np.float64)).astype(dtype)
            if op in ("Silu", "Mish", "HardSwish", "GeluApprox", "Gelu"):
                x, made = x[np.isfinite(made) & (x != -INF)], made[np.isfinite(made) & (x != -INF)]
            atol = {np.float32: 1e-9, np.float64: 1e-13}.get(dtype, 1e-6)
            # 1 + erf cancels far below 0, as everybody does in f32.
            atol = 2e-6 if op == "Gelu" and dtype == np.float32 else atol
            archive.results(op, op, {"x": x}, [made], rtol[dtype], atol)
    for turn, (op, function) in enumerate(BINARY.items()):
        for dtype in (np.float32, np.float64):
            a = wave((5, 37), turn, -4, 4).astype(dtype)
            b = wave((5, 37), turn + 3, 0.2, 5).astype(dtype) * np.where(np.arange(37) % 3 == 0, -1, 1).astype(dtype)
            if op == "Pow":
                a, b = np.abs(a) + dtype(0.1), b
            made = quiet(function)(a.astype(np.float64), b.astype(np.float64)).astype(dtype)
            archive.results(op, op, {"a": a, "b": b}, [made], CLOSE[dtype] * 4, 2e-6 if dtype == np.float32 else 1e-14)
    for turn, (op, function) in enumerate(COMPARISONS.items()):
        for dtype in (np.float32, np.int8, np.uint64, np.float16):
            a = (np.arange(74) * 7 % 11 - (0 if dtype == np.uint64 else 5)).reshape(2, 37).astype(dtype)
            b = (np.arange(37) * 5 % 11 - (0 if dtype == np.uint64 else 5)).astype(dtype)
            if np.dtype(dtype).kind == "f":
                a[0, 3], b[5] = NAN, INF
            archive.results(op, op, {"a": a, "b": b}, [function(a, b)], 0)
    for turn, (op, function) in enumerate(INTEGERS.items()):
        for dtype in (np.int8, np.int32, np.uint64, np.uint16):
            a, b = (np.arange(67) * k % 251 for k in (73, 119))
            a, b = a.astype(np.uint8).astype(dtype), b.astype(np.uint8).astype(dtype)
            archive.results(op, op, {"a": a, "b": b}, [function(a, b)], 0)
    for dtype in (np.int16, np.int32, np.int64, np.uint8):
        a = (np.arange(61) * 53 % 127).astype(dtype)
        by = (np.arange(61) % 7).astype(dtype)
        archive.results("Shl", "Shl", {"a": a, "b": by}, [np.left_shift(a, by)], 0)
        archive.results("Shr", "Shr", {"a": a, "b": by}, [np.right_shift(a, by)], 0)
    for dtype in (np.float32, np.int32):
        x = np.array([-3, 0, 5, 7, -1], np.float64).astype(dtype)
        archive.results("Sign", "Sign", {"x": x}, [np.sign(x)], 0)
    flags = np.arange(37) % 3 == 0
    archive.results("Not", "Not", {"x": flags}, [~flags], 0)


def moves(archive):
    for turn, dtype in enumerate((np.float32, np.int8, np.float16, np.int64)):
        x = (np.arange(3 * 7 * 11) * 37 % 101).reshape(3, 7, 11).astype(dtype)
        indices = np.array([[2, -1, 0], [5, 3, -7]], (np.int32, np.int64)[turn % 2])
        archive.results("Gather", "Gather", {"x": x, "i": indices}, [np.take(x, indices, 1)], 0, axis=1)
        archive.results("Narrow", "Narrow", {"x": x}, [x[:, :, 3:8]], 0, axis=2, start=(3,), length=(5,))
        archive.results("Reverse", "Reverse", {"x": x}, [np.flip(x, (0, 2))], 0, axes=[0, 2])
        updated = x.copy()
        rows = (np.arange(3 * 2 * 11) * 13 % 97).reshape(3, 2, 11).astype(dtype)
        updated[:, 4:6] = rows
        archive.results("Update", "Update", {"x": x, "u": rows}, [updated], 0, axis=1, start=(4,))
        for op, function in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
            archive.results(op, op, {"x": x}, [function(x, 1).astype(np.int64)], 0, axis=1, keep_dim=False)
        wide = x.astype(np.float64) if x.dtype.kind == "f" else x
        for reverse in (False, True):
            turned = np.flip(wide, 2) if reverse else wide
            sums = np.cumsum(turned, 2, dtype=wide.dtype)
            sums = np.flip(sums, 2) if reverse else sums
            archive.results("CumSum", "CumSum", {"x": x}, [sums.astype(dtype)], 2e-3 if dtype == np.float16 else 1e-5,
                            axis=2, reverse=reverse)
    x = wave((2, 3, 13)).astype(np.float32)
    made = np.stack([x[:, :, k * 2:k * 2 + 9] for k in range(3)], 2)
    archive.results("Window", "Window", {"x": x}, [made], 0, kernel=[3], dilations=[2])


def fused(archive):
    x, w, b = wave((5, 37), 1), wave((37, 23), 2) / 6, wave((23,), 3)
    for dtype in (np.float32, np.float64):
        made = torch.relu(torch.tensor(x @ w + b)).numpy().astype(dtype)
        leaves = {"x": x.astype(dtype), "w": w.astype(dtype), "b": b.astype(dtype)}
        archive.results("FusedMatMulBiasAct", "FusedMatMulBiasAct", leaves, [made], 2e-5, 1e-5, act='"Relu"')
        y = wave((3, 34), 5).astype(dtype)
        a, gate = np.split(y.astype(np.float64), 2, -1)
        made = (a * gate * sigmoid(gate)).astype(dtype)
        archive.results("FusedSwiGLU", "FusedSwiGLU", {"x": y}, [made], 1e-5, 1e-6, gate_first=False)
        made = (gate * a * sigmoid(a)).astype(dtype)
        archive.results("FusedSwiGLU", "FusedSwiGLU", {"x": y}, [made], 1e-5, 1e-6, gate_first=True)
        image, k, bias = wave((2, 4, 11, 9), 7), wave((6, 2, 3, 2), 8) / 3, wave((6,), 9)
        made = F.silu(F.conv2d(*map(torch.tensor, (image, k, bias)), stride=2, padding=1, groups=2)).numpy()
        leaves = {"x": image.astype(dtype), "w": k.astype(dtype), "b": bias.astype(dtype)}
        archive.results("FusedConvBiasAct", "FusedConvBiasAct", leaves, [made.astype(dtype)], 2e-5, 1e-5, groups=2,
                        strides=[2, 2], pads=[1, 1, 1, 1], act='"Silu"')
        experts, which = wave((5, 37, 11), 11), np.array([4, 0, -1, 2, 2, 1, 3], np.int32)
        rows = wave((7, 37), 12)
        made = np.einsum("ik,ikn->in", rows, experts[which]).astype(dtype)
        leaves = {"x": rows.astype(dtype), "w": experts.astype(dtype), "i": which}
        archive.results("GroupedMatMul", "GroupedMatMul", leaves, [made], 2e-5, 2e-5)
    layer(archive)


def layer(archive):
    """An encoder layer, and the attention in it, as PyTorch has them."""
    batch, length, width, heads, hidden = 2, 13, 24, 3, 40
    torch.manual_seed(3)
    norm_first = torch.nn.TransformerEncoderLayer(width, heads, hidden, dropout=0, activation="gelu", batch_first=True,
                                                  dtype=torch.float64).eval()
    x = torch.tensor(wave((batch, length, width), 4))
    own = norm_first.self_attn
    parts = {"x": x, "qkv_w": own.in_proj_weight.T, "qkv_b": own.in_proj_bias, "out_w": own.out_proj.weight.T,
             "out_b": own.out_proj.bias, "ln1_g": norm_first.norm1.weight, "ln1_b": norm_first.norm1.bias,
             "fc1_w": norm_first.linear1.weight.T, "fc1_b": norm_first.linear1.bias,
             "fc2_w": norm_first.linear2.weight.T, "fc2_b": norm_first.linear2.bias,
             "ln2_g": norm_first.norm2.weight, "ln2_b": norm_first.norm2.bias}
    leaves = {name: np.ascontiguousarray(t.detach().numpy()).astype(np.float32) for name, t in parts.items()}
    with torch.no_grad():
        made = norm_first(x).numpy().astype(np.float32)
        attended = own(x, x, x, need_weights=False)[0].numpy().astype(np.float32)
    archive.results("FusedTransformerLayer", "FusedTransformerLayer", leaves, [made], 2e-5, 2e-5, heads=heads)
    block = {name: leaves[name] for name in ("x", "qkv_w", "out_w", "qkv_b", "out_b")}
    archive.results("FusedAttentionBlock", "FusedAttentionBlock", block, [attended], 2e-5, 2e-5, heads=heads,
                    kv_heads=heads, head_dim=width // heads, bias=True)


def gradient(archive, name, forward, operands, wrt, leaves, rtol=2e-5, atol=2e-5, **attributes):
    """`forward` of the operands, numpy arrays in double; the gradients of those in `wrt`; `leaves`: of our op, in which
    "dy" stands for the gradient of the result."""
    tensors = {n: torch.tensor(a, requires_grad=n in wrt) for n, a in operands.items()}
    y = forward(*tensors.values())
    dy = wave(tuple(y.shape), 29)
    made = torch.autograd.grad(y, [tensors[n] for n in wrt], torch.tensor(dy))
    every = {**operands, "dy": dy}
    ours = {n: every[n].astype(np.float32) if every[n].dtype.kind == "f" else every[n] for n in leaves}
    archive.results(name, name, ours, [m.numpy().astype(np.float32) for m in made], rtol, atol, **attributes)


def gradients(archive):
    x = wave((3, 37), 1, -3, 3)
    for kind, function in {"gelu": F.gelu, "gelu_approx": lambda t: F.gelu(t, approximate="tanh"), "silu": F.silu,
                           "mish": F.mish, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "hard_swish": F.hardswish,
                           "log_sigmoid": F.logsigmoid, "exp": torch.exp, "sin": torch.sin, "cos": torch.cos,
                           "atan": torch.atan, "softplus": F.softplus}.items():
        gradient(archive, "ActivationBackward", function, {"x": x}, ["x"], ["x", "dy"], kind=f'"{kind}"')
    gradient(archive, "ReluBackward", torch.relu, {"x": x}, ["x"], ["x", "dy"])
    g, b = wave((37,), 2), wave((37,), 3)
    norm = {"x": x, "g": g, "b": b}
    ln = lambda x, g, b: F.layer_norm(x, (37,), g, b)
    gradient(archive, "LayerNormBackwardInput", ln, norm, ["x"], ["x", "g", "dy"])
    gradient(archive, "LayerNormBackwardGamma", ln, norm, ["g"], ["x", "dy"])
    gradient(archive, "LayerNormBackwardBeta", ln, norm, ["b"], ["dy"])
    rms = lambda x, g: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * g
    gradient(archive, "RmsNormBackwardInput", rms, {"x": x, "g": g}, ["x"], ["x", "g", "dy"], eps=1e-5)
    gradient(archive, "RmsNormBackwardGamma", rms, {"x": x, "g": g}, ["g"], ["x", "dy"], eps=1e-5)
    image = {"x": wave((2, 6, 5, 7), 4), "g": wave((6,), 5), "b": wave((6,), 6)}
    gn = lambda x, g, b: F.group_norm(x, 3, g, b)
    gradient(archive, "GroupNormBackwardInput", gn, image, ["x"], ["x", "g", "dy"], groups=3)
    gradient(archive, "GroupNormBackwardGamma", gn, image, ["g"], ["x", "dy"], groups=3)
    gradient(archive, "GroupNormBackwardBeta", gn, image, ["b"], ["dy"])
    gradient(archive, "CumsumBackward", lambda t: torch.cumsum(t, 1), {"x": x}, ["x"], ["dy"], axis=1)
    which = np.array([4, 0, 4, 2, 1], np.int64)
    gradient(archive, "GatherBackward", lambda t, i: t[i], {"x": wave((7, 5), 7), "i": which}, ["x"], ["dy", "i"],
             extents=(7, 5))
    labels = np.array([3, -100, 0, 36, 5], np.int64)
    logits = {"x": wave((5, 37), 8), "t": labels}
    ce = lambda x, t: F.cross_entropy(x, t, reduction="none", ignore_index=-100)
    loss = ce(torch.tensor(logits["x"]), torch.tensor(labels)).numpy().astype(np.float32)
    archive.results("SoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits",
                    {"x": logits["x"].astype(np.float32), "t": labels}, [loss], 2e-5, 2e-6)
    gradient(archive, "SoftmaxCrossEntropyWithLogitsBackward", ce, logits, ["x"], ["x", "t", "dy"])
    conv = {"x": wave((2, 4, 9, 7), 9), "w": wave((6, 2, 3, 2), 10)}
    forward = lambda x, w: F.conv2d(x, w, stride=(2, 1), padding=(1, 0), groups=2)
    same = {"groups": 2, "strides": [2, 1], "pads": [1, 0, 1, 0]}
    gradient(archive, "Conv2dBackwardInput", forward, conv, ["x"], ["w", "dy"], dims=(2, 4, 9, 7), **same)
    gradient(archive, "Conv2dBackwardWeight", forward, conv, ["w"], ["x", "dy"], 2e-5, 2e-4, dims=(6, 2, 3, 2), **same)
    pool = lambda t: F.max_pool2d(t, (3, 2), (2, 2), (1, 0))
    gradient(archive, "MaxPoolBackward", pool, {"x": wave((2, 3, 9, 8), 11)}, ["x"], ["x", "dy"], kernel=[3, 2],
             strides=[2, 2], pads=[1, 0, 1, 0])
    qkv = {n: wave((2, 3, s, 8), seed) for n, s, seed in (("q", 5, 12), ("k", 7, 13), ("v", 7, 14))}
    attention = lambda q, k, v: F.scaled_dot_product_attention(q, k, v)
    gradient(archive, "AttentionBackward", attention, qkv, ["q", "k", "v"], ["q", "k", "v", "dy"], 2e-5, 2e-5, heads=3,
             kv_heads=3, head_dim=8, layout='"bhsd"')
    rope(archive)


def rope(archive):
    angles = np.outer(np.arange(7), 0.3 ** np.arange(4))
    x = wave((7, 3, 8), 15)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    leaves = {"c": np.cos(angles).astype(np.float32), "s": np.sin(angles).astype(np.float32)}

    def turned(x, sin):
        a, b = np.split(x, 2, -1)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(np.float32)

    for op, made in (("Rope", turned(x, sin)), ("RopeBackward", turned(x, -sin))):
        archive.results(op, op, {"x": x.astype(np.float32), **leaves}, [made], 1e-5, 1e-6, head_dim=8, n_rot=8,
                        packed=False)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    archive = Sequences()
    for family in (elementwise, moves, fused, gradients):
        family(archive)
    (folder / "plain.txt").write_text("".join(archive.text))
    (folder / "plain.bin").write_bytes(b"".join(archive.bytes))
    print(f"{archive.count} cases")


if __name__ == "__main__":
    main()
