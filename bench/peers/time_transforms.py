#!/usr/bin/env python3
"""Times what numpy, scipy and PyTorch take, on one thread, for the transforms and the linear algebra of bench/graphs.

  time_transforms.py       a line a case: microseconds, the median of 9 samples of 5 ms
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import time  # noqa: E402

import numpy as np  # noqa: E402
import scipy.fft  # noqa: E402
import torch  # noqa: E402


def median(run):
    run()
    start = time.perf_counter()
    run()
    runs = max(1, int(5e-3 / max(time.perf_counter() - start, 1e-7)))
    samples = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(runs):
            run()
        samples.append((time.perf_counter() - start) / runs * 1e6)
    return sorted(samples)[4]


def main():
    torch.set_num_threads(1)
    random = np.random.default_rng(1)
    for batch, n in ((1, 64), (64, 64), (1, 256), (64, 256), (1, 1024), (64, 1024), (1, 4096), (64, 4096), (1, 65536),
                     (64, 65536)):
        x = (random.normal(size=(batch, n)) + 1j * random.normal(size=(batch, n))).astype(np.complex64)
        tensor = torch.from_numpy(x)
        print(f"fft_{batch}x{n}: numpy {median(lambda: np.fft.fft(x)):.1f}, "
              f"scipy {median(lambda: scipy.fft.fft(x)):.1f}, torch {median(lambda: torch.fft.fft(tensor)):.1f}")
    real = random.normal(size=(64, 1024)).astype(np.float32)
    tensor = torch.from_numpy(real)
    print(f"rfft_64x1024: scipy {median(lambda: scipy.fft.rfft(real)):.1f}, "
          f"torch {median(lambda: torch.fft.rfft(tensor)):.1f}")
    for n in (64, 128, 256):
        a, b = random.normal(size=(n, n)), random.normal(size=(n, 1))
        print(f"{n}, f64: solve {median(lambda: np.linalg.solve(a, b)):.1f}, "
              f"cholesky {median(lambda: np.linalg.cholesky(a @ a.T + n * np.eye(n))):.1f}, "
              f"qr {median(lambda: np.linalg.qr(a)):.1f}, eigh {median(lambda: np.linalg.eigh(a)):.1f}, "
              f"svd {median(lambda: np.linalg.svd(a)):.1f}")


if __name__ == "__main__":
    main()
