#!/usr/bin/env python3
"""Writes the graphs of convolutions beside this file: layers by their names, and two whole networks.

  bench/graphs/convolutions.py

  conv_64x56x56_m128_k3x3_s2_p1    x [1, 64, 56, 56], 128 results, window 3x3, stride 2, a pad of 1 all around; bias.
                                   _d: dilation, _g: groups, _relu; convt: transposed; conv_b8_..: a batch of 8
  pool_max_64x112x112_k3x3_s2_p1   a maximum, or pool_mean
"""

import pathlib
import re

RESNET = """
conv_3x224x224_m64_k7x7_s2_p3 conv_64x56x56_m64_k1x1 conv_64x56x56_m64_k3x3_p1 conv_64x56x56_m256_k1x1
conv_256x56x56_m64_k1x1 conv_256x56x56_m128_k1x1 conv_128x56x56_m128_k3x3_s2_p1 conv_128x28x28_m512_k1x1
conv_256x56x56_m512_k1x1_s2 conv_512x28x28_m128_k1x1 conv_128x28x28_m128_k3x3_p1 conv_512x28x28_m256_k1x1
conv_256x28x28_m256_k3x3_s2_p1 conv_256x14x14_m1024_k1x1 conv_512x28x28_m1024_k1x1_s2 conv_1024x14x14_m256_k1x1
conv_256x14x14_m256_k3x3_p1 conv_1024x14x14_m512_k1x1 conv_512x14x14_m512_k3x3_s2_p1 conv_512x7x7_m2048_k1x1
conv_1024x14x14_m2048_k1x1_s2 conv_2048x7x7_m512_k1x1 conv_512x7x7_m512_k3x3_p1
"""
# Of MobileNetV2.
DEPTHWISE = """
conv_32x112x112_m32_k3x3_p1_g32 conv_96x112x112_m96_k3x3_s2_p1_g96 conv_144x56x56_m144_k3x3_p1_g144
conv_144x56x56_m144_k3x3_s2_p1_g144 conv_192x28x28_m192_k3x3_p1_g192 conv_192x28x28_m192_k3x3_s2_p1_g192
conv_384x14x14_m384_k3x3_p1_g384 conv_576x14x14_m576_k3x3_p1_g576 conv_576x14x14_m576_k3x3_s2_p1_g576
conv_960x7x7_m960_k3x3_p1_g960
"""
POINTWISE = """
conv_3x224x224_m32_k3x3_s2_p1 conv_32x112x112_m16_k1x1 conv_16x112x112_m96_k1x1 conv_96x56x56_m24_k1x1
conv_24x56x56_m144_k1x1 conv_144x56x56_m24_k1x1 conv_144x28x28_m32_k1x1 conv_32x28x28_m192_k1x1
conv_192x28x28_m32_k1x1 conv_192x14x14_m64_k1x1 conv_64x14x14_m384_k1x1 conv_384x14x14_m64_k1x1
conv_384x14x14_m96_k1x1 conv_96x14x14_m576_k1x1 conv_576x14x14_m96_k1x1 conv_576x7x7_m160_k1x1
conv_160x7x7_m960_k1x1 conv_960x7x7_m160_k1x1 conv_960x7x7_m320_k1x1 conv_320x7x7_m1280_k1x1
"""
# Of speech and music, of volumes and films, and what is left.
AUDIO = """
conv_80x3000_m384_k3_p1 conv_384x3000_m384_k3_s2_p1 conv_1x16000_m512_k10_s5 conv_512x3199_m512_k3_s2
conv_256x500_m256_k31_p15_g256 conv_64x4000_m128_k3_p16_d16
"""
VOLUMES = """
conv_3x16x112x112_m64_k3x3x3_p1 conv_64x8x56x56_m64_k3x3x3_p1 conv_128x8x28x28_m256_k3x3x3_s2_p1
conv_32x24x24x24_m32_k3x3x3_p1 conv_64x8x28x28_m64_k3x3x3_p1_g64 conv_256x4x14x14_m512_k1x1x1
"""
OTHERS = """
conv_b8_64x56x56_m64_k3x3_p1 conv_64x56x56_m64_k3x3_p1_relu conv_128x28x28_m128_k3x3_p2_d2
conv_256x28x28_m256_k3x3_p1_g32 conv_256x28x28_m512_k5x5_p2 convt_256x16x16_m128_k4x4_s2_p1 convt_64x64x64_m32_k2x2_s2
convt_256x500_m128_k16_s8_p4 pool_max_64x112x112_k3x3_s2_p1 pool_mean_256x56x56_k2x2_s2
"""
NAME = re.compile(r"(convt?|pool_max|pool_mean)_(?:b(\d+)_)?([\dx]+)(?:_m(\d+))?_k([\dx]+)((?:_[spdg]\d+)*)(_relu)?")
SIX = "0000c040"  # 6.0, as a constant has it


class Text:
    """A graph, line by line; values are their numbers."""

    def __init__(self):
        self.lines, self.shapes, self.params = [], [], 0

    def add(self, op, shape, operands=(), attributes=None, literal=""):
        words = ", ".join(f"{k} = {v}" for k, v in sorted((attributes or {}).items()) if v)
        call = f"{op}({', '.join(f'%{o}' for o in operands)}){literal}{' {' + words + '}' if words else ''}"
        self.lines.append(f"  %{len(self.lines)} = {call} : f32[{', '.join(map(str, shape))}]")
        self.shapes.append(list(shape))
        return len(self.lines) - 1

    def input(self, shape):
        return self.add("Input", shape, attributes={"name": '"x"'})

    def param(self, shape):
        self.params += 1
        return self.add("Param", shape, attributes={"name": f'"w{self.params - 1}"'})

    def window(self, x, kernel, stride, pad, dilation):
        """Results of windows over the dimensions of x behind the second, and attributes that are not the defaults."""
        n = len(kernel)
        sizes = [(s + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for s, k in zip(self.shapes[x][2:], kernel)]
        return sizes, {"strides": [stride] * n if stride > 1 else None, "pads": [pad] * (2 * n) if pad else None,
                       "dilations": [dilation] * n if dilation > 1 else None}

    def conv(self, x, results, kernel, stride=1, pad=0, dilation=1, groups=1):
        batch, channels, *_ = self.shapes[x]
        sizes, words = self.window(x, kernel, stride, pad, dilation)
        w, b = self.param([results, channels // groups, *kernel]), self.param([results])
        words["groups"] = groups if groups > 1 else None
        return self.add("Conv", [batch, results, *sizes], [x, w, b], words)

    def conv_transpose(self, x, results, kernel, stride=1, pad=0):
        batch, channels, *sizes = self.shapes[x]
        _, words = self.window(x, kernel, stride, pad, 1)
        w, b = self.param([channels, results, *kernel]), self.param([results])
        sizes = [(s - 1) * stride - 2 * pad + k for s, k in zip(sizes, kernel)]
        return self.add("ConvTranspose", [batch, results, *sizes], [x, w, b], words)

    def pool(self, x, kind, kernel, stride, pad=0):
        sizes, words = self.window(x, kernel, stride, pad, 1)
        words.update(kind=f'"{kind}"', kernel=kernel)
        return self.add("Pool", self.shapes[x][:2] + sizes, [x], words)

    def same(self, op, *x):
        return self.add(op, self.shapes[x[0]], x)

    def relu6(self, x):
        return self.same("Min", self.same("Relu", x), self.add("Constant", [], literal=f" hex {SIX}"))

    def classes(self, x, count):
        """The mean of each channel, and a product with weights."""
        batch, channels, *sizes = self.shapes[x]
        mean = self.add("Reduce", [batch, channels], [x],
                        {"op": '"mean"', "axes": list(range(2, 2 + len(sizes))), "keep_dim": "false"})
        y = self.add("MatMul", [batch, count], [mean, self.param([channels, count])])
        return self.same("Add", y, self.param([count]))

    def whole(self, name):
        return "\n".join([f"graph {name} {{", *self.lines, f"  return %{len(self.lines) - 1}", "}", ""])


def layer(name):
    op, batch, x, results, kernel, rest, relu = NAME.fullmatch(name).groups()
    shape, kernel = ([int(size) for size in words.split("x")] for words in (x, kernel))
    words = {"s": 1, "p": 0, "d": 1, "g": 1}
    words.update((word[0], int(word[1:])) for word in rest.split("_") if word)
    text = Text()
    x = text.input([int(batch or 1), *shape])
    if op == "conv":
        y = text.conv(x, int(results), kernel, words["s"], words["p"], words["d"], words["g"])
    elif op == "convt":
        y = text.conv_transpose(x, int(results), kernel, words["s"], words["p"])
    else:
        y = text.pool(x, op[len("pool_"):], kernel, words["s"], words["p"])
    if relu:
        text.same("Relu", y)
    return text


def resnet50():
    text = Text()
    x = text.same("Relu", text.conv(text.input([1, 3, 224, 224]), 64, [7, 7], 2, 3))
    x = text.pool(x, "max", [3, 3], 2, 1)
    for stage, (blocks, width) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)]):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            y = text.same("Relu", text.conv(x, width, [1, 1]))
            y = text.same("Relu", text.conv(y, width, [3, 3], stride, 1))
            y = text.conv(y, 4 * width, [1, 1])
            if block == 0:
                x = text.conv(x, 4 * width, [1, 1], stride)
            x = text.same("Relu", text.same("Add", y, x))
    text.classes(x, 1000)
    return text


def mobilenetv2():
    text = Text()
    x = text.relu6(text.conv(text.input([1, 3, 224, 224]), 32, [3, 3], 2, 1))
    for widening, results, blocks, first in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                             (6, 160, 3, 2), (6, 320, 1, 1)]:
        for block in range(blocks):
            channels, stride, y = text.shapes[x][1], first if block == 0 else 1, x
            wide = widening * channels
            if widening > 1:
                y = text.relu6(text.conv(y, wide, [1, 1]))
            y = text.relu6(text.conv(y, wide, [3, 3], stride, 1, groups=wide))
            y = text.conv(y, results, [1, 1])
            x = text.same("Add", x, y) if text.shapes[y] == text.shapes[x] else y
    text.classes(text.relu6(text.conv(x, 1280, [1, 1])), 1000)
    return text


def main():
    folder = pathlib.Path(__file__).parent
    names = (RESNET + DEPTHWISE + POINTWISE + AUDIO + VOLUMES + OTHERS).split()
    graphs = {name: layer(name) for name in names} | {"resnet50": resnet50(), "mobilenetv2": mobilenetv2()}
    for name, text in graphs.items():
        (folder / f"{name}.qir").write_text(text.whole(name))


if __name__ == "__main__":
    main()
