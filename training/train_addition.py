"""Trains models/addition.gguf: a two-layer Llama that continues "27+58=" with "85" and the end token.

Needs JAX (`pip install jax`), any CPU, one core for some minutes; see training/README.md. Every pair of numbers in
0..99 is a training example except the held-out ones, which leave in both orders; 500 of them become
models/addition_test.txt.

  python3 training/train_addition.py [--steps 2000] [--seed 1] [--out models]
"""

import argparse
import functools
import math
import os
import time

import jax
import jax.numpy as jnp
import numpy as np

from gguf_writer import GgufWriter

# Rows of 256 and 512: every K-quant format applies to this model too.
DIM, FFN, LAYERS, HEADS, KV_HEADS = 256, 512, 2, 4, 2
HEAD_DIM = DIM // HEADS
ROPE_BASE, NORM_EPSILON, CONTEXT = 10000.0, 1e-5, 64
LIMIT = 100      # operands are 0..LIMIT-1
HELD_OUT = 500
ANSWER = 4       # at most three digits and the end token

UNKNOWN, BOS, EOS, FIRST_BYTE = 0, 1, 2, 3
CHARACTERS = "0123456789+=\u2581"  # the last stands for a space, as SentencePiece writes it
FIRST_CHARACTER = FIRST_BYTE + 256
VOCABULARY = FIRST_CHARACTER + len(CHARACTERS)
TOKEN_TYPES = {"normal": 1, "unknown": 2, "control": 3, "byte": 6}

LENGTH = 1 + len("99+99=") + ANSWER


def encode(text):
    return [FIRST_CHARACTER + CHARACTERS.index(character) for character in text]


def example(a, b):
    """The padded row of tokens of one sum, and the position of its '=': the first that predicts."""
    prompt = [BOS] + encode(f"{a}+{b}=")
    row = prompt + encode(str(a + b)) + [EOS]
    return row + [EOS] * (LENGTH - len(row)), len(prompt) - 1, len(row) - len(prompt)


def split_pairs(seed):
    """The held-out ordered pairs and the training pairs; no pair is in one set in either order and in the other."""
    random = np.random.default_rng(seed)
    unordered = [(a, b) for a in range(LIMIT) for b in range(a, LIMIT)]
    held = set()
    test = []
    for index in random.permutation(len(unordered)):
        if len(test) == HELD_OUT:
            break
        a, b = unordered[index]
        held.update([(a, b), (b, a)])
        test.append((a, b) if random.random() < 0.5 else (b, a))
    train = [(a, b) for a in range(LIMIT) for b in range(LIMIT) if (a, b) not in held]
    return train, test


def sampling_weights(pairs):
    """Three draws in four are uniform; the fourth is uniform over the lengths of the numbers, since only one pair in a
    hundred has two numbers of one digit, too few to learn them by."""
    lengths = [(len(str(a)), len(str(b))) for a, b in pairs]
    count = {length: lengths.count(length) for length in set(lengths)}
    return np.array([0.75 / len(pairs) + 0.25 / len(count) / count[length] for length in lengths])


def initial_weights(seed):
    """Named and shaped as in the file: [outputs, inputs]."""
    random = np.random.default_rng(seed)
    shapes = {"token_embd.weight": (VOCABULARY, DIM), "output.weight": (VOCABULARY, DIM)}
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        shapes |= {
            block + "attn_q.weight": (DIM, DIM),
            block + "attn_k.weight": (KV_HEADS * HEAD_DIM, DIM),
            block + "attn_v.weight": (KV_HEADS * HEAD_DIM, DIM),
            block + "attn_output.weight": (DIM, DIM),
            block + "ffn_gate.weight": (FFN, DIM),
            block + "ffn_up.weight": (FFN, DIM),
            block + "ffn_down.weight": (DIM, FFN),
        }
    weights = {}
    for name, shape in shapes.items():
        deviation = 0.5 if name == "token_embd.weight" else 1 / math.sqrt(shape[1])
        if name.endswith(("attn_output.weight", "ffn_down.weight")):
            deviation /= math.sqrt(2 * LAYERS)
        weights[name] = jnp.asarray(random.normal(0, deviation, shape), jnp.float32)
    for layer in range(LAYERS):
        weights[f"blk.{layer}.attn_norm.weight"] = jnp.ones(DIM)
        weights[f"blk.{layer}.ffn_norm.weight"] = jnp.ones(DIM)
    weights["output_norm.weight"] = jnp.ones(DIM)
    return weights


def norm(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + NORM_EPSILON) * weight


def rotate(x, positions):
    """Rotary embedding over adjacent pairs; x is [batch, time, heads, HEAD_DIM], positions [batch or 1, time]."""
    frequency = ROPE_BASE ** (-np.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    angle = (positions[..., None] * frequency)[:, :, None, :]
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = jnp.stack([even * jnp.cos(angle) - odd * jnp.sin(angle), even * jnp.sin(angle) + odd * jnp.cos(angle)], -1)
    return turned.reshape(x.shape)


def forward(weights, tokens, wanted):
    """Logits at the positions `wanted` [batch, n] of `tokens` [batch, time]; the last layer computes only those."""
    batch, length = tokens.shape
    every = jnp.arange(length)[None, :]
    x = weights["token_embd.weight"][tokens]
    for layer in range(LAYERS):
        get = lambda name: weights[f"blk.{layer}.{name}.weight"]
        inputs = norm(x, get("attn_norm"))
        keys = rotate((inputs @ get("attn_k").T).reshape(batch, length, KV_HEADS, HEAD_DIM), every)
        values = (inputs @ get("attn_v").T).reshape(batch, length, KV_HEADS, HEAD_DIM)
        queried = jnp.broadcast_to(every, (batch, length))
        if layer == LAYERS - 1:
            queried = wanted
            x = jnp.take_along_axis(x, wanted[:, :, None], 1)
            inputs = jnp.take_along_axis(inputs, wanted[:, :, None], 1)
        queries = rotate((inputs @ get("attn_q").T).reshape(batch, -1, HEADS, HEAD_DIM), queried)
        queries = queries.reshape(batch, -1, KV_HEADS, HEADS // KV_HEADS, HEAD_DIM)
        scores = jnp.einsum("btghd,bsgd->bghts", queries, keys) / math.sqrt(HEAD_DIM)
        visible = every[:, None, :] <= queried[:, :, None]
        scores = jnp.where(visible[:, None, None], scores, -1e30)
        mixed = jnp.einsum("bghts,bsgd->btghd", jax.nn.softmax(scores, -1), values).reshape(batch, -1, DIM)
        x = x + mixed @ get("attn_output").T
        inputs = norm(x, get("ffn_norm"))
        x = x + (jax.nn.silu(inputs @ get("ffn_gate").T) * (inputs @ get("ffn_up").T)) @ get("ffn_down").T
    return norm(x, weights["output_norm.weight"]) @ weights["output.weight"].T


def loss(weights, tokens, equals, counts):
    wanted = jnp.minimum(equals[:, None] + jnp.arange(ANSWER), LENGTH - 2)
    logits = forward(weights, tokens, wanted)
    target = jnp.take_along_axis(tokens, wanted + 1, 1)
    surprise = -jnp.take_along_axis(jax.nn.log_softmax(logits), target[:, :, None], 2)[:, :, 0]
    mask = jnp.arange(ANSWER) < counts[:, None]
    return jnp.sum(surprise * mask) / jnp.sum(mask)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(weights, moments, step, rate, tokens, equals, counts):
    """One AdamW step; matrices decay, norm weights do not."""
    value, gradient = jax.value_and_grad(loss)(weights, tokens, equals, counts)
    size = jnp.sqrt(sum(jnp.sum(g * g) for g in gradient.values()))
    shrink = jnp.minimum(1.0, 1.0 / size)
    for name, g in gradient.items():
        first, second = moments[name]
        first = 0.9 * first + 0.1 * shrink * g
        second = 0.98 * second + 0.02 * (shrink * g) ** 2
        moments[name] = (first, second)
        update = first / (1 - 0.9**step) / (jnp.sqrt(second / (1 - 0.98**step)) + 1e-8)
        decay = 0.1 if weights[name].ndim == 2 else 0.0
        weights[name] = weights[name] - rate * (update + decay * weights[name])
    return weights, moments, value


@jax.jit
def exact(weights, tokens, equals, counts):
    """Which rows are right in every answer token. With the true answer as context this equals greedy decoding."""
    wanted = jnp.minimum(equals[:, None] + jnp.arange(ANSWER), LENGTH - 2)
    right = jnp.argmax(forward(weights, tokens, wanted), -1) == jnp.take_along_axis(tokens, wanted + 1, 1)
    return jnp.all(right | (jnp.arange(ANSWER) >= counts[:, None]), 1)


def arrays(pairs):
    rows = [example(a, b) for a, b in pairs]
    return tuple(np.array([row[part] for row in rows], np.int32) for part in range(3))


def write_model(weights, path, kind):
    writer = GgufWriter()
    for key, value in {
        "general.architecture": "llama",
        "general.name": "Quern addition",
        "general.license": "apache-2.0",
        "general.file_type": {"F32": 0, "F16": 1, "Q8_0": 7}[kind],
        "llama.context_length": CONTEXT,
        "llama.embedding_length": DIM,
        "llama.block_count": LAYERS,
        "llama.feed_forward_length": FFN,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.layer_norm_rms_epsilon": NORM_EPSILON,
        "llama.rope.dimension_count": HEAD_DIM,
        "llama.rope.freq_base": ROPE_BASE,
        "llama.vocab_size": VOCABULARY,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + list(CHARACTERS),
        "tokenizer.ggml.scores": [0.0] * FIRST_CHARACTER + [-float(i) for i in range(len(CHARACTERS))],
        "tokenizer.ggml.token_type": [TOKEN_TYPES["unknown"]] + [TOKEN_TYPES["control"]] * 2 +
                                     [TOKEN_TYPES["byte"]] * 256 + [TOKEN_TYPES["normal"]] * len(CHARACTERS),
        "tokenizer.ggml.unknown_token_id": UNKNOWN,
        "tokenizer.ggml.bos_token_id": BOS,
        "tokenizer.ggml.eos_token_id": EOS,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": False,
        "tokenizer.ggml.add_space_prefix": False,
    }.items():
        writer.add(key, value)
    for name, weight in sorted(weights.items()):
        writer.add_tensor(name, np.asarray(weight), "F32" if weight.ndim == 1 else kind)
    writer.write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--type", choices=["F32", "F16", "Q8_0"], default="F16")
    parser.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
    options = parser.parse_args()

    train, test = split_pairs(options.seed)
    train_arrays, test_arrays = arrays(train), arrays(test)
    weights = initial_weights(options.seed)
    moments = {name: (jnp.zeros_like(w), jnp.zeros_like(w)) for name, w in weights.items()}
    random = np.random.default_rng(options.seed)
    chance = sampling_weights(train)
    started = time.time()
    for step in range(1, options.steps + 1):
        rate = options.rate * min(1, step / 100) * (0.5 + 0.5 * math.cos(math.pi * step / options.steps))
        rows = random.choice(len(train), options.batch, p=chance)
        weights, moments, value = train_step(weights, moments, step, rate, *(a[rows] for a in train_arrays))
        if step % 100 == 0 or step == options.steps:
            score = int(exact(weights, *test_arrays).sum())
            print(f"step {step}  loss {float(value):.4f}  held out {score}/{len(test)}  {time.time() - started:.0f} s",
                  flush=True)
    wrong = int((~exact(weights, *train_arrays)).sum())
    print(f"training pairs wrong: {wrong} of {len(train)}")

    write_model(weights, os.path.join(options.out, "addition.gguf"), options.type)
    with open(os.path.join(options.out, "addition_test.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{a}+{b}={a + b}\n" for a, b in test)


if __name__ == "__main__":
    main()
