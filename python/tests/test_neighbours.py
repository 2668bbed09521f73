"""Beside other compilers in one process, each with an LLVM of its own: either may come first, both still compute."""
import importlib.util
import subprocess
import sys

import pytest

QUERN = """
import quern
def with_quern():
    y = quern.jit(lambda x, w: quern.silu(x @ w), threads=1)(x, w)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
"""
OTHERS = {
    "jax": """
import jax
def with_jax():
    y = jax.jit(lambda x, w: jax.nn.silu(x @ w))(x, w)
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-4, atol=1e-4)
""",
    "torch": """
import torch
def with_torch():
    y = torch.nn.functional.silu(torch.from_numpy(x) @ torch.from_numpy(w))
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-4, atol=1e-4)
""",
}
HEAD = """
import numpy as np
rng = np.random.default_rng(20261124)
x, w = rng.standard_normal((7, 37), "f4"), rng.standard_normal((37, 53), "f4")
z = x.astype("f8") @ w
expected = z / (1 + np.exp(-z))
"""


@pytest.mark.parametrize("name", sorted(OTHERS))
@pytest.mark.parametrize("quern_first", [True, False])
def test_both_compute(name, quern_first):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"no {name}")
    first, second = (QUERN, OTHERS[name]) if quern_first else (OTHERS[name], QUERN)
    a, b = ("with_quern()", f"with_{name}()") if quern_first else (f"with_{name}()", "with_quern()")
    program = HEAD + first + a + second + f"{b}\n{a}\n{b}\nprint('both')\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == "both\n", f"{done.returncode}: {done.stderr[-3000:]}"
