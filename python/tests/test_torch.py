"""torch.compile(backend="quern"), beside PyTorch in one process."""
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import quern  # noqa: E402
from quern import torch_backend  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(20261124)
    torch._dynamo.reset()
    torch_backend.report.clear()


def compiled(function):
    return torch.compile(function, backend="quern", options={"threads": 1})


def alike(got, expected, **tolerance):
    torch.testing.assert_close(got, expected, **{"rtol": 1e-4, "atol": 1e-4, **tolerance})


def test_arrays_of_torch():
    x = torch.randn(3, 5)
    assert quern.graph.arrays.take(x).data.ctypes.data == x.data_ptr()
    f = quern.jit(lambda a, b: quern.silu(a @ b), threads=1)
    w = torch.randn(5, 7, requires_grad=True)
    alike(torch.from_numpy(f(x, w)), torch.nn.functional.silu(x @ w).detach())
    alike(torch.from_numpy(f(x.T.contiguous().T, w)), torch.nn.functional.silu(x @ w).detach())
    half = torch.randn(3, 5, dtype=torch.bfloat16)
    out = torch.empty(3, 5, dtype=torch.bfloat16)
    g = quern.Graph()
    g.output("y", g.input("x", "bf16[3, 5]") * 2)
    g.compile(threads=1).run({"x": half}, {"y": out})
    alike(out, half * 2)


def test_a_network():
    net = torch.nn.Sequential(torch.nn.Linear(37, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 11),
                              torch.nn.Softmax(-1))
    x = torch.randn(5, 37)
    with torch.no_grad():
        alike(compiled(net)(x), net(x))
    assert sum(e["pieces"] for e in torch_backend.report) >= 1
    assert sum(e["covered"] for e in torch_backend.report) >= 8


def test_gradients():
    def make():
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(13, 17), torch.nn.Tanh(), torch.nn.Linear(17, 3))
    x, ours, theirs = torch.randn(7, 13), make(), make()
    compiled(ours)(x).square().sum().backward()
    theirs(x).square().sum().backward()
    for a, b in zip(ours.parameters(), theirs.parameters()):
        alike(a.grad, b.grad)
    assert len(torch_backend.report) >= 2  # forward and backward


def test_what_is_not_covered_stays():
    def f(x):
        y = torch.relu(x @ x.T) + 1
        return torch.linalg.svdvals(y).sum() + torch.exp(y).mean() * 2

    x = torch.randn(7, 7)
    alike(compiled(f)(x), f(x))
    assert any("svd" in kept for e in torch_backend.report for kept in e["kept"])


CASES = {
    "convolution": lambda x: torch.nn.functional.conv2d(x.reshape(1, 3, 8, 8), torch.ones(5, 3, 3, 3), padding=1) * 2,
    "views": lambda x: torch.cat([x[:, 1:5].t().reshape(-1, 2), x[0, :4].reshape(2, 2)]).unsqueeze(1).squeeze(1) + 1,
    "reductions": lambda x: (x.mean(1, keepdim=True) - x.amax((0, 1)) + x.sum()) * 2,
    "comparisons": lambda x: torch.where(x > 0, x, -x).clamp(0.1, 2) + (x == 0),
    "dtypes": lambda x: (x.double() * 2).float() + x.to(torch.bfloat16).float(),
    "attention": lambda x: torch.softmax(x @ x.T / 8, -1) @ x,
    "numbers": lambda x: (1 - x) / 2 + x.pow(2) * 3,
    "embedding": lambda x: torch.nn.functional.embedding(torch.tensor([[1, 3, 0]]), x) * 2,
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    x = torch.randn(8, 24)
    alike(compiled(CASES[name])(x), CASES[name](x), rtol=1e-3, atol=1e-3)
    assert sum(e["pieces"] for e in torch_backend.report) >= 1, torch_backend.report
