#!/usr/bin/env python3
"""quern run and quern chat under grammars and JSON schemas: what is printed follows them, or there is an error.

    grammar_test.py QUERN SOURCE_DIR
"""
import json
import os
import sys
import tempfile

from program import expect, Program

QUERN, SOURCE = Program(sys.argv[1]), sys.argv[2]
MODEL = os.path.join(SOURCE, "models/addition.gguf")
STORIES = os.path.join(SOURCE, "../shared/models/gguf/stories260K-Q8_0.gguf")


def run(*args, code=0, says=""):
    out, err = QUERN.run(*args, code=code)
    expect(says in err, args, "must say", repr(says), "not", err)
    return out


def digits(folder):
    question = ["run", MODEL, "--prompt", "27+58="]
    expect(run(*question, "--grammar", "root ::= [0-9]{2}") == "85\n", "what it would say is allowed")
    expect(run(*question, "--grammar", 'root ::= "7" [0-9]{3}').startswith("7"), "what it would not say")
    path = os.path.join(folder, "rules.gbnf")
    with open(path, "w", encoding="utf-8") as f:
        f.write('# two digits\nroot ::=\n  digit{2}\n\ndigit ::= [0-9]\n')
    expect(run(*question, "--grammar-file", path) == "85\n", "from a file")
    ids = [run(*question, "--grammar", "root ::= [0-9]{4}", "--temp", "2", "--seed", "3", "--ids", "--threads", n)
           for n in ("1", "2")]
    expect(ids[0] == ids[1] and len(ids[0].split()) == 4, "the same seed, the same ids, and an end:", ids)
    # It fails closed.
    expect(run(*question, "--grammar", 'root ::= "\\u00e9"') == "\u00e9\n", "a character of two tokens")
    run(*question, "--grammar", 'root ::= ((("a"? "b"?){200} "c"?){200} "d"?){200}', code=1, says="needs more than")
    run(*question, "--grammar", "root ::= [0-9]{6}", "--tokens", "3", code=1, says="--tokens N allows more")
    run(*question, "--grammar", "root ::= [0-9]{2}", "--stop", "8", code=1, says="whole text of its grammar")
    run(*question, "--grammar", "root ::= x", code=1, says="the grammar, 1:10: the rule x is not defined")
    run(*question, "--grammar", "root ::= root", code=1, says="never ends")
    run(*question, "--json", "--grammar", "root ::= \"a\"", code=2, says="excludes")
    run(*question, "--grammar-file", os.path.join(folder, "none"), code=1, says="cannot open")
    with open(path, "w", encoding="utf-8") as f:
        f.write('{"type": "string", "pattern": "^a"}')
    run(*question, "--json-schema", path, code=1, says='the keyword "pattern" is not taken')


def stories(folder):
    if not os.path.exists(STORIES):
        print("skipped: no ../shared/models/gguf/stories260K-Q8_0.gguf")
        return
    path = os.path.join(folder, "schema.json")
    schema = {"type": "object", "required": ["name", "age", "friends"], "additionalProperties": False,
              "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 20},
                             "age": {"type": "integer", "minimum": 1, "maximum": 99},
                             "friends": {"type": "array", "items": {"enum": ["Lily", "Tom", None]}, "maxItems": 3}}}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(schema, f)
    said = set()
    for seed in range(8):
        arguments = ["run", STORIES, "--prompt", "Once upon a time", "--json-schema", path, "--tokens", "300", "--temp",
                     "1.2" if seed else "0", "--seed", str(seed)]
        text = run(*arguments)
        value = json.loads(text)
        expect(list(value) == ["name", "age", "friends"] and 1 <= len(value["name"]) <= 20, "members:", text)
        expect(1 <= value["age"] <= 99 and len(value["friends"]) <= 3, "bounds:", text)
        expect(set(value["friends"]) <= {"Lily", "Tom", None}, "constants:", text)
        said.add(text)
    expect(len(said) > 4, "seeds differ:", said)
    expect(run(*arguments) == text, "the same seed, the same text")


with tempfile.TemporaryDirectory(prefix="quern_grammar_") as scratch:
    digits(scratch)
    stories(scratch)
print("what is printed follows the rules")
