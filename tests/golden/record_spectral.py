#!/usr/bin/env python3
"""Records what numpy, scipy and PyTorch make of complex numbers, transforms and linear algebra: spectral.txt and .bin.

  record_spectral.py [FOLDER]      writes into FOLDER, this one when not given

Needs what record_sequence.py does. The form of the files is that of ops.txt and ops.bin. Results are numpy's in double,
rounded once. Errors of transforms are allowed by the size of the line, 1e-6 log2(n) of it at the most; vectors whose
sign is free have the one that the ops say.
"""

import pathlib
import sys

import numpy as np
import record_ops
import scipy.signal
import torch
from record_ops import INF, NAN, wave
from record_sequence import Sequences

record_ops.DTYPES["complex64"] = "c64"


def numbers(shape, seed=0):
    return (wave(shape, seed) + 1j * wave(shape, seed + 5)).astype(np.complex64)


def c64(z):
    return np.asarray(z).astype(np.complex64)


EDGES = np.array([0, -0.0, 1, 1j, -2.5 + 3.5j, complex(INF, 1), complex(-1, -INF), complex(NAN, 2), complex(3, NAN),
                  complex(INF, NAN), 1e-20 + 1e-20j, 3e18 - 4e18j, 0.3], np.complex64)


def naive(a, b):
    a, b = a.astype(np.complex128), b.astype(np.complex128)
    a, b = np.broadcast_arrays(a, b)
    return parts(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def parts(re, im):
    out = np.empty(np.broadcast(re, im).shape, np.complex64)
    out.real, out.imag = re, im
    return out


def arithmetic(archive):
    with np.errstate(all="ignore"):
        a, b = numbers((5, 7), 1), numbers((7,), 3)
        pairs = {"Add": lambda x, y: x + y, "Sub": lambda x, y: x - y, "Mul": naive, "Div": lambda x, y: x / y}
        for op, function in pairs.items():
            for x, y in ((a, b), (a, a[:, :1]), (b, a[0, 0].reshape(()))):
                wide = c64(function(x.astype(np.complex128), y.astype(np.complex128)))
                archive.add(op, [f"{op}(%0, %1)"], {"x": x, "y": y}, wide, 2e-6, 1e-6)
        archive.add("Mul", ["Mul(%0, %1)"], {"x": EDGES, "y": np.full(1, 2 - 1j, np.complex64)},
                    naive(EDGES, np.full(1, 2 - 1j, np.complex64)), 1e-6, 1e-37)
        for z in (a, EDGES):
            archive.add("Neg", ["Neg(%0)"], {"z": z}, -z, 0)
            archive.add("Conjugate", ["Conjugate(%0)"], {"z": z}, np.conj(z), 0)
            archive.add("Real", ["Real(%0)"], {"z": z}, z.real.copy(), 0)
            archive.add("Imag", ["Imag(%0)"], {"z": z}, z.imag.copy(), 0)
            archive.add("Abs", ["Abs(%0)"], {"z": z}, np.abs(z.astype(np.complex128)).astype(np.float32), 1e-6)
        archive.add("Abs", ["Abs(%0)"], {"z": c64([3e38 + 1e38j, 3e-30 + 4e-30j])},
                    np.abs(np.array([3e38 + 1e38j, 3e-30 + 4e-30j])).astype(np.float32), 1e-6)
        archive.add("ComplexNormSq", ["ComplexNormSq(%0)"], {"z": a},
                    (np.abs(a.astype(np.complex128)) ** 2).astype(np.float32), 1e-6)
        g = wave((5, 7), 9).astype(np.float32)
        archive.add("ComplexNormSqBackward", ["ComplexNormSqBackward(%0, %1)"], {"z": a, "g": g}, c64(2 * g * a), 1e-6)
        archive.add("Exp", ["Exp(%0)"], {"z": a}, c64(np.exp(a.astype(np.complex128))), 3e-6, 1e-6)
        real = c64([0, 1, -3, 80, -80, INF, -INF, NAN])
        archive.add("Exp", ["Exp(%0)"], {"z": real}, parts(np.exp(real.real.astype(np.float64)), real.imag), 2e-6,
                    1e-37)
        for op, function in (("Eq", np.equal), ("Ne", np.not_equal)):
            other = EDGES.copy()
            other[::3] = other[::3].conj()
            other[2] = 7
            archive.add(op, [f"{op}(%0, %1)"], {"x": EDGES, "y": other}, function(EDGES, other), 0)
        chosen = np.arange(7) % 2 == 0
        archive.add("Where", ["Where(%0, %1, %2)"], {"c": chosen, "x": a, "y": b}, np.where(chosen, a, b), 0)
        re, im = wave((3, 1, 5), 2).astype(np.float32), wave((2, 5), 4).astype(np.float32)
        archive.add("Complex", ["Complex(%0, %1)"], {"x": re, "y": im}, parts(re, im), 0)
        archive.add("Cast", ["Cast(%0) {to = c64}"], {"x": re}, re.astype(np.complex64), 0)
        archive.add("Cast", ["Cast(%0) {to = c64}"], {"x": np.arange(-2, 3, dtype=np.int64)},
                    np.arange(-2, 3).astype(np.complex64), 0)


def moves(archive):
    z = numbers((3, 4, 5), 6)
    index = np.array([2, -1, 0, 9], np.int64)
    for line, expected in (("Reshape(%0) {shape = <6, 10>}", z.reshape(6, 10)),
                           ("Transpose(%0) {perm = [2, 0, 1]}", z.transpose(2, 0, 1)),
                           ("Narrow(%0) {axis = -2, start = <1>, length = <2>}", z[:, 1:3]),
                           ("Slice(%0) {axis = [-1, 0], start = <4, 0>, stop = <0, 3>, step = [-2, 1]}",
                            z[:, :, 4:0:-2]),
                           ("Reverse(%0) {axes = [-1, 0]}", z[::-1, :, ::-1]),
                           ("Expand(%0) {shape = <2, 3, 4, 5>}", np.broadcast_to(z, (2, 3, 4, 5)))):
        archive.add(line.split("(")[0], [line], {"z": z}, expected.copy(), 0)
    archive.add("Concat", ["Concat(%0, %1) {axis = -2}"], {"x": z, "y": z[:, :2].copy()},
                np.concatenate([z, z[:, :2]], 1), 0)
    archive.add("Gather", ["Gather(%0, %1) {axis = -1}"], {"z": z, "i": index}, z[:, :, [2, 4, 0, 4]], 0)
    wide = z.astype(np.complex128)
    for axes, keep in (((-1,), False), ((0, 2), True), ((0, 1, 2), False)):
        for op, function in (("sum", np.sum), ("mean", np.mean), ("prod", np.prod)):
            expected = c64(function(wide, axes, keepdims=keep))
            size = float(np.abs(expected).max())
            archive.add("Reduce", [f'Reduce(%0) {{op = "{op}", axes = [{", ".join(map(str, axes))}], '
                                   f'keep_dim = {str(keep).lower()}}}'], {"z": z}, expected, 1e-5, 1e-5 * size + 1e-5)
    for (m, k, n), turned, batch in (((3, 5, 7), False, ()), ((17, 64, 33), True, ()), ((4, 3, 5), False, (2,)),
                                     ((1, 1, 1), True, (3, 1)), ((2, 0, 3), False, ())):
        a, b = numbers((*batch, m, k), 3), numbers((*batch[-1:], *((n, k) if turned else (k, n))), 8)
        c = np.swapaxes(b, -1, -2) if turned else b
        archive.add("MatMul", [f"MatMul(%0, %1) {{transpose_b = {str(turned).lower()}}}"], {"x": a, "y": b},
                    c64(a.astype(np.complex128) @ c.astype(np.complex128)), 1e-5, 1e-6 * max(k, 1) * 4)


NORMS = {"backward": "backward", "ortho": "ortho", "forward": "forward"}


def close(expected):
    """How far a transform may be off: by the root of the mean square of what it gives."""
    n = expected.size
    return 1e-6 * max(1, np.log2(max(n, 2))) * float(np.sqrt((np.abs(expected) ** 2).mean())) + 1e-30


def transforms(archive):
    sizes = [1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 36, 37, 60, 64, 97, 100, 127, 128, 131, 139, 192, 255, 256,
             262, 1000, 1009]
    for at, n in enumerate(sizes):
        norm = list(NORMS)[at % 3]
        rows = 1 if n > 200 else 2
        x = numbers((rows, n), n)
        real = wave((rows, n), n + 1).astype(np.float32)
        for op, function in (("Fft", np.fft.fft), ("Ifft", np.fft.ifft)):
            expected = function(x.astype(np.complex128), axis=1, norm=norm)
            archive.add(op, [f'{op}(%0) {{norm = "{norm}"}}'], {"x": x}, c64(expected), 0, close(expected))
        expected = np.fft.rfft(real.astype(np.float64), axis=1, norm=norm)
        archive.add("Rfft", [f'Rfft(%0) {{norm = "{norm}"}}'], {"x": real}, c64(expected), 0, close(expected))
        half = x[:, :n // 2 + 1].copy()
        half[0, 0] += 3j  # not looked at
        expected = np.fft.irfft(half.astype(np.complex128), n, axis=1, norm=norm)
        archive.add("Irfft", [f'Irfft(%0) {{n = {n}, norm = "{norm}"}}'], {"x": half}, expected.astype(np.float32), 0,
                    close(expected))
    for shape, axis in (((6, 5), 0), ((3, 64, 2), 1), ((2, 3, 40), -1), ((96, 3, 1), 0), ((0, 8), -1)):
        x = numbers(shape, 4)
        real = x.real.copy()
        wide = x.astype(np.complex128)
        cases = (("Fft", x, np.fft.fft(wide, axis=axis)), ("Ifft", x, np.fft.ifft(wide, axis=axis)),
                 ("Rfft", real, np.fft.rfft(real.astype(np.float64), axis=axis)))
        for op, leaf, expected in cases:
            kind = np.complex64
            archive.add(op, [f"{op}(%0) {{axis = {axis}}}"], {"x": leaf}, expected.astype(kind), 0,
                        close(expected) if expected.size else 0)
    for op, function in (("Fft", np.fft.fft), ("Ifft", np.fft.ifft)):  # a symbolic batch; and no norm at all
        x = numbers((9, 24), 2)
        expected = function(x.astype(np.complex128)) * (24 if op == "Ifft" else 1)
        archive.results(op, op, {"x": x}, [c64(expected)], 0, close(expected),
                        types={"x": "c64[S, 24]", "results": ["c64[S, 24]"]}, norm='"none"')
    for n, d in ((1, 1.0), (8, 1.0), (7, 0.25), (100, 0.001)):
        archive.results("FftFreq", "FftFreq", {}, [np.fft.fftfreq(n, d).astype(np.float32)], 1e-7, n=n, d=d)
        archive.results("RfftFreq", "RfftFreq", {}, [np.fft.rfftfreq(n, d).astype(np.float32)], 1e-7, n=n, d=d)


def stft(x, window, frame, hop, center, onesided):
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(frame // 2, frame // 2)], mode="reflect")
    frames = 1 + (x.shape[-1] - frame) // hop
    cut = np.stack([x[..., t * hop:t * hop + frame] * window for t in range(frames)], -1)
    return (np.fft.rfft if onesided else np.fft.fft)(cut, axis=-2)


def signals(archive):
    for length, frame, hop, center, onesided in ((61, 16, 5, False, True), (64, 16, 16, True, True),
                                                 (50, 9, 4, True, False), (37, 37, 3, False, True),
                                                 (200, 64, 24, True, True)):
        x = wave((2, length), length).astype(np.float32)
        window = scipy.signal.get_window("hann", frame).astype(np.float32)
        expected = stft(x.astype(np.float64), window.astype(np.float64), frame, hop, center, onesided)
        theirs = torch.stft(torch.from_numpy(x), frame, hop, frame, torch.from_numpy(window), center, "reflect",
                            onesided=onesided, return_complex=True).numpy()
        if np.abs(theirs - expected).max() > 1e-4:
            sys.exit("Stft: PyTorch gives something else")
        archive.checked += 1
        archive.results("Stft", "Stft", {"x": x, "w": window}, [c64(expected)], 0, close(expected), frame=frame,
                        hop=hop, center=center, onesided=onesided)
    for n, fs in ((1, 1.0), (30, 10.0), (33, 1.0), (256, 44100.0)):
        x = wave((3, n), n).astype(np.float32)
        _, power = scipy.signal.periodogram(x.astype(np.float64), fs, detrend=False)
        archive.results("PsdReal", "PsdReal", {"x": x}, [power.astype(np.float32)], 1e-5,
                        1e-5 * float(power.max()), fs=fs)
    for length, taps in ((1, 1), (30, 7), (7, 30), (100, 29), (257, 64)):
        x, w = wave((2, length), 3).astype(np.float32), wave((taps,), 5).astype(np.float32)
        expected = np.stack([np.convolve(row, w.astype(np.float64)) for row in x.astype(np.float64)])
        archive.results("FftConv1d", "FftConv1d", {"x": x, "w": w}, [expected.astype(np.float32)], 0,
                        close(expected) * 2)


def signed(vectors, others=None):
    """Columns with the sign of the ops, and rows of the others with them."""
    weights = 1 / (np.arange(vectors.shape[-2]) + np.pi)
    sign = np.where(np.einsum("...ij,i->...j", vectors, weights) < 0, -1.0, 1.0)
    turned = vectors * sign[..., None, :]
    return turned if others is None else (turned, others * sign[..., :, None])


def algebra(archive):
    for dtype, eps in ((np.float32, 1e-6), (np.float64, 1e-13)):
        random = np.random.default_rng(7)

        def draw(*shape):
            return random.uniform(-1, 1, shape).astype(dtype)

        def add(op, leaves, expected, scale=1.0, **attributes):
            wide = [np.asarray(e, dtype) for e in expected]
            if dtype == np.float64 and len(wide) > 1:
                for r in range(len(wide)):
                    archive.results(op, op, leaves, wide, 0, eps * scale, only=r, **attributes)
            else:
                archive.results(op, op, leaves, wide, 0, eps * scale, **attributes)

        for n, batch in ((1, ()), (2, (3,)), (5, (2, 3)), (17, (2,)), (33, ()), (40, ())):
            a = draw(*batch, n, n) + (np.eye(n) * 2).astype(dtype)
            wide = a.astype(np.float64)
            solve = "BatchedDenseSolve" if batch else "DenseSolve"
            b, v = draw(*batch, n, 3), draw(*batch, n)
            condition = float(np.linalg.cond(wide).max())
            add(solve, {"a": a, "b": b}, [np.linalg.solve(wide, b.astype(np.float64))], condition)
            add(solve, {"a": a, "b": v}, [np.linalg.solve(wide, v[..., None].astype(np.float64))[..., 0]], condition,
                vector=True)
            det = np.linalg.det(wide)
            if n < 40:
                add("Det", {"a": a}, [det], 4 * n * float(np.abs(det).max()))
            sign, size = np.linalg.slogdet(wide)
            add("LogDet", {"a": a}, [sign, size], 10 * n)
            positive = (wide @ np.swapaxes(wide, -1, -2) + np.eye(n)).astype(dtype)
            half = np.linalg.cholesky(positive.astype(np.float64))
            add("Cholesky", {"a": positive}, [half], 4 * float(np.abs(half).max()))
            add("Cholesky", {"a": positive}, [np.swapaxes(half, -1, -2)], 4 * float(np.abs(half).max()), upper=True)
            symmetric = (wide + np.swapaxes(wide, -1, -2)).astype(dtype)
            values, vectors = np.linalg.eigh(symmetric.astype(np.float64))
            gap = float(np.diff(values, axis=-1).min(initial=1))
            add("Eigh", {"a": symmetric}, [values, signed(vectors)], 20 + 20 * n / min(gap, 1))
            for m, k in ((n, n), (n, max(1, n // 2)), (max(1, n // 3), n)):
                c = draw(*batch, m, k)
                q, r = np.linalg.qr(c.astype(np.float64))
                sign = np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
                q, r = q * sign[..., None, :], r * sign[..., :, None]
                least = float(np.abs(np.diagonal(r, axis1=-2, axis2=-1)).min())
                add("Qr", {"a": c}, [q, r], 10 + 10 * n / least)
                u, s, vt = np.linalg.svd(c.astype(np.float64), full_matrices=False)
                u, vt = signed(u, vt)
                gap = float(min(np.abs(np.diff(s, axis=-1)).min(initial=1), s.min()))
                add("Svd", {"a": c}, [u, s, vt], 20 + 20 * n / min(gap, 1))
        singular = np.ones((1, 3, 3), dtype)
        add("LogDet", {"a": singular}, [np.zeros(1), np.full(1, -INF)], 1)
        add("Cholesky", {"a": -np.eye(3, dtype=dtype)}, [np.full((3, 3), NAN)], 1)
        add("Det", {"a": np.zeros((2, 0, 0), dtype)}, [np.ones(2)], 1)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    archive = Sequences()
    for family in (arithmetic, moves, transforms, signals, algebra):
        family(archive)
    (folder / "spectral.txt").write_text("".join(archive.text))
    (folder / "spectral.bin").write_bytes(b"".join(archive.bytes))
    print(f"{archive.count} cases, {archive.checked} of them by other systems too")


if __name__ == "__main__":
    main()
