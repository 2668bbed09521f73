"""Makes small vocabularies of the kinds that ../shared/models/vocab lacks, and records the ids that llama.cpp gives to
texts by them: tests/golden/vocabularies/NAME.gguf, .inp and .out, in the form of that folder.

  t5    Unigram with a charsmap (characters that become others), merged blanks and user-defined tokens
  t5b   the same without these: blanks are kept, and one is put before a text
  rwkv  bytes, written as RWKV's vocabularies write them

Needs libllama, built as record_architectures.py says:

  cc -O2 -I llama.cpp/include -I llama.cpp/ggml/include -o llama_tokens llama_tokens.c LIBS/libllama*.so
      LIBS/libggml*.so -Wl,-rpath,LIBS
  python3 record_vocabularies.py ./llama_tokens
"""

import os
import random
import struct
import subprocess
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vocabularies")
MARKER = "\n__ggml_vocab_test__\n"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5
TEXTS = [
    "", " ", "  ", "a", "hello", "Hello", " hello", "hello world", "hello  world", "  hello   world  ", "\t", "\n",
    "hello\nworld", "hello\tworld", "\u2581hello", "the other theatre", "thethethe", "12 1234 12345", "3.14",
    "don't stop", "\uff21\uff22 fullwidth", "\ufb01nd the \ufb01sh", "caf\u00e9", "cafe\u0301", "\u00bd of it",
    "non\u00a0breaking", "\u4e16\u754c", "\u4e16 \u754c!", "\U0001f600 smile \U0001f600\U0001f600", "<mask> word",
    "a<mask>b", "<mask><mask>", "<unused>", "<pad></s>", "x" * 40, "hellohello worldworld", "\u00fc\u00fc\u00fc",
    "\\n is no newline", "tab\\t", "caf\u00e9 \u4e16\u754c \U0001f600 end", "\r\n", "a\r\nb", "_underscore_",
    "ALL CAPS", "mixedCase", "\u0301", "e\u0301e\u0301",
]


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def array(kind, values, pack):
    return struct.pack("<IIQ", 9, kind, len(values)) + b"".join(pack(value) for value in values)


def write(name, keys):
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys))
    for key, value in keys.items():
        data += text(key) + value
    data += b"\0" * (-len(data) % 32)
    with open(os.path.join(FOLDER, name + ".gguf"), "wb") as file:
        file.write(data)


def vocabulary(model, tokens, extra):
    """`tokens`: text, score, kind."""
    keys = {
        "general.architecture": struct.pack("<I", 8) + text("llama"),
        "tokenizer.ggml.model": struct.pack("<I", 8) + text(model),
        "tokenizer.ggml.tokens": array(8, [token for token, _, _ in tokens], text),
        "tokenizer.ggml.scores": array(6, [score for _, score, _ in tokens], lambda v: struct.pack("<f", v)),
        "tokenizer.ggml.token_type": array(5, [kind for _, _, kind in tokens], lambda v: struct.pack("<i", v)),
    }
    keys.update(extra)
    return keys


def charsmap(pairs):
    """A double array of the sequences, and their replacements (src/text/normaliser.h)."""
    replacements, places, tree = b"", {}, {}
    for source, to in pairs.items():
        places[source.encode()] = len(replacements)
        replacements += to.encode() + b"\0"
        node = tree
        for byte in source.encode():
            node = node.setdefault(byte, {})
    words = {0: 0}

    def place(index, node, prefix, label):
        children = sorted(node) + ([0] if prefix in places else [])
        base = 1
        while any((base ^ child) in words for child in children):
            base += 1
        words[index] = label | (prefix in places) << 8 | (index ^ base) << 10
        for child in children:
            words[base ^ child] = 0  # taken
        if prefix in places:
            words[base] = 1 << 31 | places[prefix]
        for child in sorted(node):
            place(base ^ child, node[child], prefix + bytes([child]), child)

    place(0, tree, b"", 0)
    size = (max(words) | 255) + 1  # every byte may be asked for
    blob = b"".join(struct.pack("<I", words.get(i, 0xff)) for i in range(size))
    return struct.pack("<I", len(blob)) + blob + replacements


def t5(name, merged):
    chooser = random.Random(7)
    words = [
        "\u2581", "\u2581the", "\u2581hello", "\u2581world", "hello", "world", "the", "th", "he", "er", "ll", "lo",
        "wor", "ld", "\u2581other", "\u2581th", "eat", "atre", "re", "\u25811", "12", "123", "34", "45", "\u2581of",
        "\u2581it", "fi", "nd", "sh", "\u2581fi", "caf\u00e9", "caf", "\u00e9", "\u2581caf", "\u4e16",
        "\u4e16\u754c", "\U0001f600", "\u2581smile", "xx", "xxxx", "\u2581un", "der", "score", "\u2581end", "AL",
        "Case", "no", "\u2581no"]
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)] + list("0123456789ABCEHLPS.'!_\\/")
    tokens = [("<pad>", 0.0, CONTROL), ("</s>", 0.0, CONTROL), ("<unk>", 0.0, UNKNOWN)]
    tokens += [(word, -chooser.uniform(2, 9), NORMAL) for word in words]
    tokens += [(letter, -chooser.uniform(6, 12), NORMAL) for letter in letters]
    tokens += [("<mask>", 0.0, USER_DEFINED), ("<unused>", -3.0, UNUSED)]
    number = lambda value: struct.pack("<II", 4, value)
    extra = {"tokenizer.ggml.eos_token_id": number(1), "tokenizer.ggml.unknown_token_id": number(2),
             "tokenizer.ggml.padding_token_id": number(0),
             "tokenizer.ggml.add_space_prefix": struct.pack("<I?", 7, True),
             "tokenizer.ggml.remove_extra_whitespaces": struct.pack("<I?", 7, merged)}
    if merged:
        blob = charsmap({"\uff21": "A", "\uff22": "B", "\ufb01": "fi", "\t": " ", "\n": " ", "\r\n": " ", "\u00a0": " ",
                         "e\u0301": "\u00e9", "\u00bd": "1/2"})
        extra["tokenizer.ggml.precompiled_charsmap"] = array(0, list(blob), lambda v: struct.pack("<B", v))
    write(name, vocabulary("t5", tokens, extra))


def rwkv():
    tokens = ["<s>"]
    for byte in range(256):
        plain = {9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\"}.get(byte)
        tokens.append(plain or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}"))
    tokens += ["the", " the", "hello", " hello", " world", "12", "123", "  ", "caf\u00e9", "\\xe4\\xb8", "\u4e16\u754c",
               "\\xf0\\x9f\\x98\\x80", "xx", "xxxx", "\\n\\n", "\\r\\n", "don\\'t", "<mask>"]
    write("rwkv", vocabulary("rwkv", [(token, 0.0, NORMAL) for token in tokens], {}))


def main():
    os.makedirs(FOLDER, exist_ok=True)
    t5("t5", True)
    t5("t5b", False)
    rwkv()
    for name in ("t5", "t5b", "rwkv"):
        path = os.path.join(FOLDER, name + ".gguf")
        with open(path + ".inp", "w", encoding="utf-8", newline="") as file:
            file.write("".join(each + MARKER for each in TEXTS))
        subprocess.run([os.path.abspath(sys.argv[1]), path, path + ".inp", path + ".out"], check=True)


main()
