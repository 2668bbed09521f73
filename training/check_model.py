"""Runs models/addition.gguf by a second route: a GGUF reader and a Llama in plain numpy, nothing shared with training.

  python3 training/check_model.py [models/addition.gguf [models/addition_test.txt]]

Prints how many of the test lines ("27+58=85") greedy decoding continues exactly, and fails below 99%.
"""

import struct
import sys

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def scalar(self, code):
        value = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        length = self.scalar("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            item, count = self.scalar("I"), self.scalar("Q")
            return [self.value(item) for _ in range(count)]
        return self.scalar(SCALARS[kind])


def decode(data, kind, shape):
    count = int(np.prod(shape))
    if kind in (0, 1):
        return np.frombuffer(data, "<f4" if kind == 0 else "<f2", count).astype(np.float64).reshape(shape)
    if kind == 8:  # Q8_0
        blocks = np.frombuffer(data, np.dtype([("scale", "<f2"), ("bytes", "i1", 32)]), count // 32)
        return (blocks["scale"].astype(np.float64)[:, None] * blocks["bytes"]).reshape(shape)
    raise ValueError(f"tensor type {kind}")


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    reader = Reader(data)
    assert data[:4] == b"GGUF"
    reader.at = 4
    assert reader.scalar("I") == 3
    tensor_count, value_count = reader.scalar("Q"), reader.scalar("Q")
    metadata = {}
    for _ in range(value_count):
        key = reader.string()
        metadata[key] = reader.value(reader.scalar("I"))
    infos = []
    for _ in range(tensor_count):
        name, rank = reader.string(), reader.scalar("I")
        shape = [reader.scalar("Q") for _ in range(rank)][::-1]
        infos.append((name, shape, reader.scalar("I"), reader.scalar("Q")))
    start = (reader.at + 31) // 32 * 32
    return metadata, {name: decode(data[start + offset :], kind, shape) for name, shape, kind, offset in infos}


class Llama:
    """One token at a time with a cache of keys and values, in double precision."""

    def __init__(self, metadata, tensors):
        get = lambda key: metadata["llama." + key]
        self.layers = get("block_count")
        self.heads, self.kv_heads = get("attention.head_count"), get("attention.head_count_kv")
        self.epsilon, self.base = get("attention.layer_norm_rms_epsilon"), get("rope.freq_base")
        self.size = get("embedding_length") // self.heads
        self.tensors = tensors
        self.keys = [[] for _ in range(self.layers)]
        self.values = [[] for _ in range(self.layers)]
        self.position = 0

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x * x) + self.epsilon) * self.tensors[name + ".weight"]

    def rotate(self, heads):
        turn = np.exp(1j * self.position * self.base ** (-np.arange(0, self.size, 2) / self.size))
        pairs = (heads[:, 0::2] + 1j * heads[:, 1::2]) * turn
        return np.stack([pairs.real, pairs.imag], -1).reshape(heads.shape)

    def step(self, token):
        x = self.tensors["token_embd.weight"][token]
        for layer in range(self.layers):
            name = f"blk.{layer}."
            apply = lambda which, vector: self.tensors[name + which + ".weight"] @ vector
            inputs = self.norm(x, name + "attn_norm")
            queries = self.rotate(apply("attn_q", inputs).reshape(self.heads, self.size))
            self.keys[layer].append(self.rotate(apply("attn_k", inputs).reshape(self.kv_heads, self.size)))
            self.values[layer].append(apply("attn_v", inputs).reshape(self.kv_heads, self.size))
            keys, values = np.array(self.keys[layer]), np.array(self.values[layer])
            mixed = []
            for head in range(self.heads):
                shared = head * self.kv_heads // self.heads
                scores = keys[:, shared] @ queries[head] / np.sqrt(self.size)
                weights = np.exp(scores - scores.max())
                mixed.append(weights / weights.sum() @ values[:, shared])
            x = x + apply("attn_output", np.concatenate(mixed))
            inputs = self.norm(x, name + "ffn_norm")
            gate = apply("ffn_gate", inputs)
            x = x + apply("ffn_down", gate / (1 + np.exp(-gate)) * apply("ffn_up", inputs))
        self.position += 1
        return self.tensors["output.weight"] @ self.norm(x, "output_norm")


def complete(metadata, tensors, prompt, most=8):
    tokens = metadata["tokenizer.ggml.tokens"]
    ids = [metadata["tokenizer.ggml.bos_token_id"]] + [tokens.index(character) for character in prompt]
    model = Llama(metadata, tensors)
    for token in ids:
        logits = model.step(token)
    text = ""
    for _ in range(most):
        token = int(np.argmax(logits))
        if token == metadata["tokenizer.ggml.eos_token_id"]:
            break
        text += tokens[token]
        logits = model.step(token)
    return text


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "models/addition.gguf"
    tests = sys.argv[2] if len(sys.argv) > 2 else "models/addition_test.txt"
    metadata, tensors = load(path)
    with open(tests, encoding="utf-8") as file:
        lines = file.read().split()
    right = 0
    for line in lines:
        prompt, answer = line.split("=")
        got = complete(metadata, tensors, prompt + "=")
        right += got == answer
        if got != answer:
            print(f"{prompt}= gave {got!r}, expected {answer}")
    print(f"{right} of {len(lines)} exact")
    sys.exit(right < 0.99 * len(lines))


if __name__ == "__main__":
    main()
