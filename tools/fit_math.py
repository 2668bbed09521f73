#!/usr/bin/env python3
"""Fits the polynomials of src/simd/math and prints their coefficients, lowest power first; of functions in pieces
(erf_pieces, tanh_pieces) the tables of src/simd/math/pieces.h, a line a power.

Each fit minimises the greatest relative error of the finished function on a dense grid. Coefficients are
rounded to float one at a time, lowest power first, and the others are fitted again around the rounded ones, which keeps
the error of rounding out of the terms that matter. Needs numpy and mpmath:

    $ python3 tools/fit_math.py sin
    sin: sin(r) = r + r s p(s), s = r r, |r| <= pi/4; error 2^-28.2
      -1.66666552e-01f, 8.33216030e-03f, -1.95152956e-04f
"""
import sys

import mpmath as mp
import numpy as np

mp.mp.dps = 50
GRID = 800  # even, so that zero, where the quotients below are 0/0, is not a node


def minimax(x, g, w, powers, rounds=400):
    """Coefficients over x^powers that nearly minimise max |w (p(x) - g)|, and that error (Lawson's iteration)."""
    scale = np.max(np.abs(x))
    basis = np.stack([(x / scale) ** k * w for k in powers], axis=1)
    emphasis = np.ones_like(x)
    best, best_error = None, np.inf
    for _ in range(rounds):
        root_emphasis = np.sqrt(emphasis)
        solution = np.linalg.lstsq(basis * root_emphasis[:, None], w * g * root_emphasis, rcond=None)[0]
        error = np.abs(basis @ solution - w * g)
        if error.max() < best_error:
            best, best_error = solution, error.max()
        emphasis = emphasis * (error + 1e-3 * error.max())
        emphasis /= emphasis.mean()
    return best / scale ** np.array(powers), best_error


def fit(lo, hi, target, weight, degree, rounding, fixed=()):
    """target and weight take an mpf; fixed gives the lowest coefficients that are already chosen."""
    nodes = [mp.mpf(lo) + (mp.mpf(hi) - lo) * (1 - mp.cos(mp.pi * (i + mp.mpf(1) / 2) / GRID)) / 2 for i in range(GRID)]
    x = np.array([float(v) for v in nodes])
    g = np.array([float(target(v)) for v in nodes])
    w = np.array([float(weight(v)) for v in nodes])
    coefficients = list(fixed)
    while len(coefficients) <= degree:
        known = sum((c * x**k for k, c in enumerate(coefficients)), np.zeros_like(x))
        rest, _ = minimax(x, g - known, w, range(len(coefficients), degree + 1))
        coefficients.append(float(rounding(rest[0])))
    final = w * (sum(c * x**k for k, c in enumerate(coefficients)) - g)
    return coefficients, float(np.max(np.abs(final)))


half_ln2 = mp.log(2) / 2
root = mp.sqrt(mp.mpf(1) / 2)
f32, f64 = np.float32, np.float64
f32_bits = 24
sq = mp.sqrt

# name: text, interval, target of the polynomial, weight of its error in the result, degree, rounding, and
# perhaps the lowest coefficients, where the source carries them in two parts
FITS = {
    "exp_sixteenth": ("exp(r) = 1 + r + r r p(r), |r| <= ln(2)/32", -half_ln2 / 16, half_ln2 / 16,
                      lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2, 1, f32),
    "expm1_sixteenth": ("exp(r) - 1 = r + r r p(r), |r| <= ln(2)/32", -half_ln2 / 16, half_ln2 / 16,
                        lambda r: (mp.expm1(r) - r) / r**2, abs, 2, f32),
    "exp": ("exp(r) = 1 + r + r r p(r), |r| <= ln(2)/2", -half_ln2, half_ln2,
            lambda r: (mp.exp(r) - 1 - r) / r**2, lambda r: r**2 / mp.exp(r), 4, f32),
    "exp2": ("2^r = 1 + r p(r), |r| <= 1/2", -0.5, 0.5,
             lambda r: (mp.mpf(2)**r - 1) / r, lambda r: r / mp.mpf(2)**r, 6, f32),
    "log": ("log(1 + f) = f - f f / 2 + f f f p(f), sqrt(1/2) <= 1 + f <= sqrt(2)", root - 1, 2 * root - 1,
            lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, lambda f: f**3 / mp.log1p(f), 8, f32),
    "log2": ("log2(1 + f) = f + f p(f), sqrt(1/2) <= 1 + f <= sqrt(2)", root - 1, 2 * root - 1,
             lambda f: (mp.log1p(f) / mp.log(2) - f) / f, lambda f: f * mp.log(2) / mp.log1p(f), 9, f32),
    "sin": ("sin(r) = r + r s p(s), s = r r, |r| <= pi/4", 0, mp.pi**2 / 16,
            lambda s: (mp.sin(sq(s)) - sq(s)) / (s * sq(s)), lambda s: s * sq(s) / mp.sin(sq(s)), 2, f32),
    "cos": ("cos(r) = 1 - s / 2 + s s p(s), s = r r, |r| <= pi/4", 0, mp.pi**2 / 16,
            lambda s: (mp.cos(sq(s)) - 1 + s / 2) / s**2, lambda s: s**2 / mp.cos(sq(s)), 2, f32),
    "atan": ("atan(t) = t + t s p(s), s = t t, |t| <= 1", 0, 1,
             lambda s: (mp.atan(sq(s)) - sq(s)) / (s * sq(s)), lambda s: s * sq(s) / mp.atan(sq(s)), 8, f32),
    "erf": ("erf(x) = x + x p(x x - 1/2), |x| <= 1", -0.5, 0.5,
            lambda t: mp.erf(sq(t + 0.5)) / sq(t + 0.5) - 1, lambda t: sq(t + 0.5) / mp.erf(sq(t + 0.5)), 6, f32),
    "erf_tail": ("erf(x) = 1 - exp(-p(x - 1)), 1 <= x <= 4", 0, 3,
                 lambda u: -mp.log(mp.erfc(u + 1)), lambda u: mp.erfc(u + 1) / mp.erf(u + 1), 8, f32,
                 (float(-mp.log(mp.erfc(1))),)),
    "pow_log2": ("log2(m) = s p(s s), s = (m - 1) / (m + 1), sqrt(1/2) <= m <= sqrt(2)", 0, mp.mpf("0.0295"),
                 lambda z: 2 * mp.atanh(sq(z)) / sq(z) / mp.log(2),
                 lambda z: sq(z) * mp.log(2) / mp.atanh(sq(z)) / 2, 5, f64),
    "pow_exp2": ("2^r = p(r), |r| <= 1/2", -0.5, 0.5, lambda r: mp.mpf(2)**r, lambda r: mp.mpf(2)**-r, 7, f64),
}


def last_place(value):
    return mp.mpf(2) ** (mp.frexp(abs(value))[1] - f32_bits)


def piece(f, lo, hi, degree, whole):
    """node, value and coefficients c of f(x) = value + u (c[0] + c[1] u + ...), u = x - node, for x in [lo, hi]. The
    node is one of the floats about the middle, the one where f comes nearest to a float. Of the piece at zero the value
    is 0, with c[0] = 1 (whole), or x itself."""
    starts_at_zero = lo == 0
    if starts_at_zero:
        node = value = f32(0)
    else:
        middle = f32((lo + hi) / 2)
        floats = [middle + f32(64 * i) * np.spacing(middle) for i in range(-150, 151)]
        images = [f(mp.mpf(float(x))) for x in floats]
        nearest = min(range(len(floats)), key=lambda i: abs(mp.mpf(float(f32(images[i]))) - images[i]))
        node, value = floats[nearest], f32(images[nearest])
    nodes = [mp.mpf(lo) + (mp.mpf(hi) - lo) * (1 - mp.cos(mp.pi * (i + mp.mpf(1) / 2) / 200)) / 2 for i in range(200)]
    start = (lambda x: 0) if whole else (lambda x: x)
    u = [x - mp.mpf(float(node)) for x in nodes]
    g = [(f(x) - (start(x) if starts_at_zero else mp.mpf(float(value)))) / d for x, d in zip(nodes, u)]
    w = np.array([float(d / last_place(f(x))) for x, d in zip(nodes, u)])
    u, g = np.array([float(d) for d in u]), np.array([float(v) for v in g])
    coefficients = np.zeros(degree)
    for k in range(degree):
        rest, _ = minimax(u, g - np.polyval(coefficients[::-1], u), w, range(k, degree), 60)
        coefficients[k] = 1.0 if starts_at_zero and whole and k == 0 else f32(rest[0])
    error = float(np.max(np.abs(w * (np.polyval(coefficients[::-1], u) - g))))
    return (float(node), float(value), *coefficients), error


def pieces_of(f, shift, bits, top, whole):
    """32 pieces of degree 4: x + shift in floats whose mantissas have so many bits, each in the place that the low five
    bits of those floats say."""
    pieces = [None] * 32
    bounds = [shift]
    while len(bounds) <= 32:
        bounds.append(bounds[-1] + 2.0 ** (np.floor(np.log2(bounds[-1])) - bits))
    for lo, hi in zip(bounds, bounds[1:]):
        slot = int(f32(lo).view(np.uint32) >> (23 - bits)) % 32
        pieces[slot] = piece(f, lo - shift, min(hi - shift, top), 4, whole)
    return pieces


PIECES = {
    "erf_pieces": ("erf(x), 16 an octave of x + 21/16, to 3.93", lambda: pieces_of(mp.erf, 1.3125, 4, 3.93, False)),
    "tanh_pieces": ("tanh(x), 8 an octave of x + 5/8, to 9.02", lambda: pieces_of(mp.tanh, 0.625, 3, 9.02, True)),
}


# Of doubles, whose last places numpy does not have: name: text, interval, target, coefficients.
DOUBLES = {
    "exp_f64": ("exp(r) = 1 + r + r r p(r), |r| <= ln(2)/2", -half_ln2 * mp.mpf("1.0001"), half_ln2 * mp.mpf("1.0001"),
                lambda r: (mp.expm1(r) - r) / r**2 if abs(r) > 1e-9 else 0.5 + r / 6, 11),
    "log_f64": ("log((1 + s) / (1 - s)) = 2 s + s z p(z), z = s s, |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)",
                mp.mpf("1e-20"), (3 - 4 * root)**2 * mp.mpf("1.001"),
                lambda z: 2 * (mp.atanh(sq(z)) / sq(z) - 1) / z, 8),
    "pow_log_f64": ("log((1 + s) / (1 - s)) = 2 s + s z (2/3 + z p(z)), z = s s, |s| as of log_f64", mp.mpf("1e-20"),
                    (3 - 4 * root)**2 * mp.mpf("1.001"),
                    lambda z: (2 * (mp.atanh(sq(z)) / sq(z) - 1) / z - mp.mpf(2) / 3) / z, 8),
    "atan_f64": ("atan(t) = t + t s p(s), s = t t, |t| <= tan(pi/8)", mp.mpf("1e-20"),
                 (2 * root - 1)**2 * mp.mpf("1.0001"), lambda s: (mp.atan(sq(s)) / sq(s) - 1) / s, 12),
    "sin_f64": ("sin(r) = r + r s p(s), s = r r, |r| <= pi/4", mp.mpf("1e-20"), mp.pi**2 / 16 * mp.mpf("1.0001"),
                lambda s: (mp.sin(sq(s)) / sq(s) - 1) / s, 6),
    "cos_f64": ("cos(r) = 1 - s / 2 + s s p(s), s = r r, |r| <= pi/4", mp.mpf("1e-15"),
                mp.pi**2 / 16 * mp.mpf("1.0001"), lambda s: (mp.cos(sq(s)) - 1 + s / 2) / s**2, 6),
    "erf_f64": ("erf(x) = x + x p(x x - 1/2), |x| <= 1", mp.mpf(-0.5) + mp.mpf("1e-20"), mp.mpf(0.5),
                lambda t: mp.erf(sq(t + 0.5)) / sq(t + 0.5) - 1, 13),
    "erf_tail_f64": ("erf(x) = 1 - exp(-p(x - 1)), 1 <= x <= 6", mp.mpf(0), mp.mpf(5),
                     lambda u: -mp.log(mp.erfc(u + 1)), 25),
}


def print_doubles(name):
    text, lo, hi, target, count = DOUBLES[name]
    coefficients, error = mp.chebyfit(target, [lo, hi], count, error=True)
    print(f"{name}: {text}; error of p 2^{float(mp.log(error, 2)):.1f}")
    print("  " + ", ".join(mp.nstr(c, 17) for c in reversed(coefficients)))


def print_pieces(name):
    text, make = PIECES[name]
    pieces = make()
    print(f"{name}: {text}; error {max(error for _, error in pieces):.2f} of the last place")
    for row in zip(*(numbers for numbers, _ in pieces)):
        print("  {" + ", ".join(f"{x:.8e}f" for x in row) + "},")


def main():
    for name in sys.argv[1:] or [*FITS, *PIECES, *DOUBLES]:
        if name not in FITS:
            (print_pieces if name in PIECES else print_doubles)(name)
            continue
        text, lo, hi, target, weight, degree, rounding, *fixed = FITS[name]
        coefficients, error = fit(lo, hi, target, weight, degree, rounding, *fixed)
        suffix, digits = ("f", 8) if rounding is f32 else ("", 16)
        print(f"{name}: {text}; error 2^{np.log2(error):.1f}")
        print("  " + ", ".join(f"{c:.{digits}e}{suffix}" for c in coefficients))


if __name__ == "__main__":
    main()
