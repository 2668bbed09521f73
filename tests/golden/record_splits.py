#!/usr/bin/env python3
"""Records tests/golden/splits.txt: the words that each rule of src/text/pre_tokenizer.cc splits a few texts into, by
the `regex` module of PyPI and the expressions as the models' tokenizer.json files have them.

    python3 -m venv venv && venv/bin/pip install regex && venv/bin/python tests/golden/record_splits.py

A line is a rule, a tab and JSON: a list of lists of words, one for each text of the first line.
"""
import json
import pathlib

import regex

TEXTS = [
    "Hello  world's 12345 tests!\n\n  It'LL cost $1,000.50 (cheap)...\t ok ",
    "def f(x):\r\n    return x**2 # caf\u00e9 na\u00efve e\u0301\n",
    "HTTPServer camelCase ALLCAPS'S it's I'M \u01c5ep",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01123 \u3053\u3093\u306b\u3061\u306f \ud55c\uad6d\uc5b4 "
    "\u0440\u0443\u0441\u0441\u043a\u0438\u0439 \u0e44\u0e17\u0e22",
    "\U0001f999.cpp \U0001f636\u200d\U0001f32b\ufe0f \u2705 \u00bd \u2167 \u0663\u0664\u0665\u0666",
    "   \n \n\n\t\t\n  x\u00a0y\u3000z\u0085q\u2028r   ",
    "a`b|c~d^e<f>g=h+i$j@k#l%m&n*o-p_q/r\\s{t}u[v]w\"x;y:z,!?.",
    "1234567890 12 345 6/7/8//\n/ http://a.b/c \n/\n",
]

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
RULES = {
    "gpt-2": [GPT2],
    "llama-bpe": [LLAMA3],
    "dbrx": [LLAMA3],
    "qwen2": [QWEN2],
    "qwen35": [r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
               r"\s*[\r\n]+|\s+(?!\S)|\s+"],
    "gpt-4o": [GPT4O],
    "tekken": [GPT4O.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")],
    "starcoder": [r"\p{N}", GPT2],
    "falcon": [r"[\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"],
    # Their list of letters is what had a case in Unicode then.
    "deepseek-llm": [r"[\r\n]", r"\s?[\p{Lu}\p{Ll}\p{Lt}]+",
                     r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+\Z",
                     r"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", r"\p{N}+"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
                    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"""
                    r""" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""],
    "kimi-k2": [KIMI],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"
                   r"\s+(?!\S)|\s+"],
    "seed-coder": [r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|"
                   r"\s*[\r\n]+|\s+(?!\S)|\s+"],
    "bloom": [" ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"],
    "viking": [" ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+", r"\p{N}"],
    "default": [r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
}


def split(words, pattern):
    result = []
    for word in words:
        at = 0
        for match in regex.finditer(pattern, word, regex.V1):
            if match.end() == match.start():
                continue
            result += [word[at:match.start()], match.group()]
            at = match.end()
        result.append(word[at:])
    return [word for word in result if word]


lines = [json.dumps(TEXTS)]
for name, patterns in RULES.items():
    splits = []
    for text in TEXTS:
        words = [text]
        for pattern in patterns:
            words = split(words, pattern)
        assert "".join(words) == text
        splits.append(words)
    lines.append(name + "\t" + json.dumps(splits))
pathlib.Path(__file__).with_name("splits.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
