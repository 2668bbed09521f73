"""Records what Hugging Face's tokenizers makes of texts by small tokenizers of each kind: tests/golden/tokenizers/NAME
has tokenizer.json, tokenizer_config.json and cases.json, a list of texts and their ids.

The tokenizers are trained here, on this repository's own documentation. Needs the package tokenizers:

  python3 record_tokenizers.py [NAME..]
"""

import glob
import json
import os
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "tokenizers")
WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
TEXTS = [
    "Hello world", " Hello  world's  ", "I'll say: THEY'RE 12345 + 67.8!", "line\nline\n\n  indented\r\n\ttab",
    "caf\u00e9 na\u00efve \u4f60\u597d \U0001f600 \u0627\u0644\u0633\u0644\u0627\u0645",
    "<s>special</s> text<|end|> more", "a", "  ", "for (int i = 0; i < n; ++i) sum += a[i] * b[i];",
    "The kernel language and the kernels of attention.",
]


def corpus():
    return sorted(glob.glob(os.path.join(HERE, "../../docs/*.md")))[:12]


def byte_level(pre, ignore_merges=False, normalizer=None, begin=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train(corpus(), trainers.BpeTrainer(vocab_size=420, special_tokens=["<s>", "</s>"], show_progress=False,
                                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_tokens([AddedToken("<|end|>", special=False, normalized=False)])
    if begin:
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])])
    return tokenizer


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior, invert),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def pieces(normalizer, pre, template):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizer
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    # Trained on words with a visible space in front, so that pieces do not cross words.
    teacher = Tokenizer(models.BPE(unk_token="<unk>"))
    teacher.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    teacher.train(corpus(), trainers.BpeTrainer(vocab_size=700, special_tokens=special, show_progress=False))
    trained = json.loads(teacher.to_str())["model"]
    whole = json.loads(tokenizer.to_str())
    whole["model"]["vocab"], whole["model"]["merges"] = trained["vocab"], trained["merges"]
    tokenizer = Tokenizer.from_str(json.dumps(whole))
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.add_tokens([AddedToken("<|end|>", special=False, normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=[("<s>", 1), ("</s>", 2)])
    return tokenizer


def words():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train(corpus(), trainers.WordPieceTrainer(
        vocab_size=500, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]",
                                                             special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def tokenizers():
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    yield "gpt2", byte_level(level)
    yield "llama3", byte_level(split(WORDS % "{1,3}"), ignore_merges=True, begin=True)
    possessive = WORDS.replace("]?\\p", "]?+\\p").replace("]+[", "]++[")
    yield "cl100k", byte_level(split(possessive % "{1,3}", "removed", True))
    yield "qwen2", byte_level(split(WORDS % ""), normalizer=normalizers.NFC())
    yield "digits", byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), level]))
    visible = normalizers.Replace(" ", "\u2581")
    yield "llama2", pieces(normalizers.Sequence([normalizers.Prepend("\u2581"), visible]), None, "<s> $A")
    yield "mistral", pieces(None, pre_tokenizers.Metaspace(prepend_scheme="always", split=False), "<s> $A")
    yield "mistral-first", pieces(None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), "<s> $A")
    yield "gemma", pieces(visible, pre_tokenizers.Split(" ", "merged_with_previous"), "<s> $A </s>")
    yield "bert", words()


def record(name, tokenizer):
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    # As the fewest bytes: it is data.
    with open(os.path.join(folder, "tokenizer.json"), "w") as file:
        json.dump(json.loads(tokenizer.to_str()), file, ensure_ascii=False, separators=(",", ":"))
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False},
              "chat_template": "{{ messages[0].content }}"}
    if name == "bert":
        config = {"cls_token": "[CLS]", "sep_token": "[SEP]"}
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as file:
        json.dump(config, file)
    cases = [{"text": text, "ids": tokenizer.encode(text).ids} for text in TEXTS]
    with open(os.path.join(folder, "cases.json"), "w") as file:
        json.dump(cases, file, indent=0)
    print(name, len(tokenizer.get_vocab()), sum(len(case["ids"]) for case in cases))


if __name__ == "__main__":
    for each in tokenizers():
        if len(sys.argv) == 1 or each[0] in sys.argv[1:]:
            record(*each)
