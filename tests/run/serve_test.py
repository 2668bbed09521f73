"""quern serve: OpenAI's forms, what it refuses, and 64 clients at once.

    serve_test.py QUERN MODEL [SCREENSHOT.png]

Every answer of the crowd has to be the text that the server gives alone (--invariant), whatever others do: clients that
go away, read slowly, send no JSON or too much of it. Bounded: each request has a limit of tokens and of time, and the
server is on the loopback interface.
"""
import concurrent.futures
import http.client
import json
import math
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from browser import CHROMIUM, Browser
from random_mamba import random_mamba
from model_keys import with_keys, with_template

SEED = 20261124
QUERN, MODEL = sys.argv[1], sys.argv[2]
STORIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared/models/gguf/stories260K-F32.gguf")
ALL = "{% for m in messages %}{{ m.content }}{% endfor %}"
FAILED = []


def expect(truth, what):
    if not truth:
        FAILED.append(what)
        print("FAILED:", what)


class Served:
    def __init__(self, *arguments, model=MODEL):
        self.process = subprocess.Popen([QUERN, "serve", model, "--port", "0", *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if not found:
            raise SystemExit(f"no address: {line!r} {self.process.communicate()[1]}")
        self.port = int(found.group(1))

    def ask(self, method, path, body=None, headers=None, timeout=120):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        sent = {"Content-Type": "application/json", **(headers or {})}
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text, response

    def complete(self, body, path="/v1/completions"):
        status, text, _ = self.ask("POST", path, body)
        return json.loads(text)["choices"][0]["text"] if status == 200 else f"{status}: {text}"

    def stream(self, body, path="/v1/completions"):
        status, text, _ = self.ask("POST", path, dict(body, stream=True))
        if status != 200:
            return f"{status}: {text}"
        events = [event[6:] for event in text.split("\n\n") if event]
        expect(events[-1] == "[DONE]", "a stream ends with [DONE]")
        return "".join(json.loads(event)["choices"][0]["text"] for event in events[:-1])

    def metrics(self):
        text = self.ask("GET", "/metrics")[1]
        return {name: float(value) for name, value in re.findall(r"^quern_(\w+) (\S+)$", text, re.M)}

    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        expect(self.process.wait(timeout=30) == 0, "SIGTERM ends it, with 0")
        self.process.stdout.close()
        self.process.stderr.close()


def prompts(count):
    """Sums, as the bundled model knows them."""
    draw = random.Random(SEED)
    return [f"{draw.randrange(100)}+{draw.randrange(100)}=" for _ in range(count)]


def test_logprobs(server, body):
    """Shares of tokens: those of a greedy answer are the greatest, they are shares, and streams say the same."""
    plain = json.loads(server.ask("POST", "/v1/completions", body)[1])["choices"][0]
    expect("logprobs" not in plain, "nobody asked for logprobs")
    asked = json.loads(server.ask("POST", "/v1/completions", dict(body, logprobs=20))[1])["choices"][0]
    said = asked["logprobs"]
    expect(asked["text"] == plain["text"] and "".join(said["tokens"]) == plain["text"], f"tokens are the text: {said}")
    for token, logprob, best in zip(said["tokens"], said["token_logprobs"], said["top_logprobs"]):
        expect(best[token] == logprob == max(best.values()), f"a greedy token is the best: {best}")
        shares = sum(math.exp(value) for value in best.values())
        expect(0.5 < shares <= 1 + 1e-9 and len(best) > 1, f"shares of {shares}")
    none = json.loads(server.ask("POST", "/v1/completions", dict(body, logprobs=0))[1])["choices"][0]["logprobs"]
    expect(none["token_logprobs"] == said["token_logprobs"] and none["top_logprobs"] == [{}] * len(said["tokens"]),
           f"no others were asked for: {none}")
    _, text, _ = server.ask("POST", "/v1/completions", dict(body, logprobs=2, stream=True))
    tokens, offsets = [], []
    for event in text.split("\n\n"):
        if event.startswith("data: {"):
            part = json.loads(event[6:])["choices"][0].get("logprobs", {"tokens": [], "text_offset": []})
            tokens += part["tokens"]
            offsets += part["text_offset"]
    expect(tokens == said["tokens"], f"a stream has the same tokens: {tokens}")
    starts = [len("".join(tokens[:i])) for i in range(len(tokens))]
    expect(len(tokens) > 1 and offsets == said["text_offset"] == starts, f"where tokens begin: {offsets}, not {starts}")
    hot = json.loads(server.ask("POST", "/v1/completions", dict(body, logprobs=20, temperature=3, seed=1))[1])
    expect(hot["choices"][0]["logprobs"]["top_logprobs"][0] == said["top_logprobs"][0], "shares before temperature")


def test_forms(server):
    status, text, _ = server.ask("GET", "/v1/models")
    expect(status == 200 and json.loads(text)["data"][0]["id"] == os.path.basename(MODEL), "the model is listed")
    body = {"prompt": "27+58=", "max_tokens": 4, "temperature": 0}
    status, text, _ = server.ask("POST", "/v1/completions", body)
    answer = json.loads(text)
    expect(answer["choices"][0]["text"].startswith("85"), f"27+58 is 85: {text}")
    expect(answer["object"] == "text_completion" and answer["usage"]["prompt_tokens"] > 0, "the form of a completion")
    expect(server.stream(body) == answer["choices"][0]["text"], "a stream is the same text")
    stopped = server.ask("POST", "/v1/completions", dict(body, stop=["5"]))[1]
    expect(json.loads(stopped)["choices"][0] == {"index": 0, "text": "8", "finish_reason": "stop"}, stopped)
    status, text, _ = server.ask("POST", "/v1/embeddings", {"input": "x"})
    expect(status == 400 and "no encoder" in text, "a language model gives no embeddings")
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "yy"]}},
              "required": ["a", "b"], "additionalProperties": False}
    asked = dict(body, max_tokens=60, response_format={"type": "json_schema", "json_schema": {"schema": schema}})
    answer = json.loads(server.ask("POST", "/v1/completions", dict(asked, seed=5, temperature=1))[1])
    said = answer["choices"][0]
    if said["finish_reason"] == "stop":
        value = json.loads(said["text"])
        expect(set(value) == {"a", "b"} and isinstance(value["a"], int) and value["b"] in ("x", "yy"), said)
    else:
        expect(said["text"].startswith("{"), said)
    test_logprobs(server, body)
    every = {"top_k": 5, "top_p": 0.9, "min_p": 0.1, "typical_p": 0.9, "repeat_penalty": 1.1, "penalty_last": 3,
             "frequency_penalty": 0.1, "presence_penalty": 0.1, "mirostat_tau": 2, "mirostat_eta": 0.2,
             "top_n_sigma": 2, "xtc_probability": 0.5, "xtc_threshold": 0.1, "dynatemp_range": 0.5,
             "dynatemp_exponent": 1, "dry_multiplier": 0.8, "dry_base": 2, "dry_allowed_length": 2,
             "dry_penalty_last": 100, "dry_breakers": ["="]}
    expect(server.complete(dict(body, temperature=1.5, **every)), "every number of sampling is taken")
    for seed in (3, 4):
        drawn = [server.complete(dict(body, temperature=1.5, seed=seed)) for _ in range(2)]
        expect(drawn[0] == drawn[1], "the same seed, the same text")


def test_refusals(server):
    good = {"prompt": "1+1=", "max_tokens": 2}
    cases = [
        (b"{", "no JSON"), (b"[]", "no JSON object"), (b"[" * 100000, "nested too deeply"), (b"\xff\xfe", "no JSON"),
        ({}, "prompt: "), (dict(good, max_tokens=0), "max_tokens: "), (dict(good, max_tokens="3"), "max_tokens: "),
        (dict(good, max_tokens=1e300), "max_tokens: "), (dict(good, temperature=-1), "temperature: "),
        (dict(good, top_p=0), "top_p: a number in (0, 1]"), (dict(good, frequency_penalty=3), "in [-2, 2]"),
        (dict(good, typical_p=2), "typical_p: "), (dict(good, penalty_last=-2), "a whole number from -1 on"),
        (dict(good, dry_breakers=["a", 3]), "dry_breakers: "), (dict(good, dry_breakers=[""]), "dry_breakers: "),
        (dict(good, penalty_last=2.0), "penalty_last: "), (dict(good, top_k=1e300), "top_k: "),
        (dict(good, top_k=2**31), "top_k: "), (dict(good, min_p="1"), "min_p: "),
        (dict(good, stop=3), "stop: "), (dict(good, stop=["a"] * 99), "stop: "),
        (dict(good, n=2), "n: "), (dict(good, logprobs=21), "logprobs: "), (dict(good, logprobs=-1), "logprobs: "),
        (dict(good, logprobs=True), "logprobs: "), (dict(good, logit_bias={"x": 1}), "logit_bias"),
        (dict(good, logit_bias={"1": 1e9}), "logit_bias"), (dict(good, prompt=[99999999]), "out of range"),
        (dict(good, prompt=[-1]), "prompt: "), (dict(good, prompt="1" * 5000), "leaves no room"),
        (dict(good, stream="yes"), "stream: "),
        (dict(good, response_format={"type": "xml"}), "response_format.type"),
        (dict(good, response_format={"type": "json_schema"}), "response_format.json_schema"),
        (dict(good, response_format={"type": "json_schema", "json_schema": {"schema": {"type": "x"}}}),
         "json_schema: "),
    ]
    for body, word in cases:
        status, text, _ = server.ask("POST", "/v1/completions", body)
        expect(status == 400 and word in text, f"{str(body)[:60]} is refused with {word!r}: {status} {text[:200]}")
    chat = [({"messages": []}, "messages"), ({"messages": [3]}, "messages[0]"), ({"messages": [{}]}, "role"),
            ({"messages": [{"role": "user", "content": 3}]}, "content"),
            ({"messages": [{"role": "user", "content": "x"}]}, "chat template")]
    for body, word in chat:
        status, text, _ = server.ask("POST", "/v1/chat/completions", body)
        expect(status == 400 and word in text, f"{body} is refused with {word!r}: {status} {text[:200]}")
    for path, headers, status in [
            ("/health", {"Host": "evil.example"}, 403), ("/v1/models", {"Origin": "http://evil.example"}, 403),
            ("/v1/models", {"Origin": "null"}, 403),
            ("/v1/models", {"Origin": f"http://localhost:{server.port}"}, 200),
            ("/nothing", {}, 404), ("/", {}, 200), ("/page.js", {}, 200), ("/page.css", {}, 200)]:
        got = server.ask("GET", path, headers=headers)
        expect(got[0] == status, f"{path} with {headers}: {got[0]}, not {status}")
    expect("default-src 'none'" in server.ask("GET", "/")[2].getheader("Content-Security-Policy"), "a policy")
    status = server.ask("POST", "/v1/completions", good, {"Content-Type": "text/plain"})[0]
    expect(status == 415, "a form of another page is no JSON")
    status = server.ask("POST", "/v1/completions", b"{" + b" " * (9 << 20))[0]
    expect(status == 413, f"a body of 9 MiB is too large: {status}")


def test_chat():
    with tempfile.TemporaryDirectory() as folder:
        server = Served(model=with_template(MODEL, folder, "chat.gguf", ALL))
        messages = [{"role": "user", "content": [{"type": "text", "text": "27"}, {"type": "text", "text": "+58="}]}]
        body = {"messages": messages, "temperature": 0, "max_tokens": 8}
        answer = json.loads(server.ask("POST", "/v1/chat/completions", body)[1])
        choice = answer["choices"][0]
        expect(choice["message"] == {"role": "assistant", "content": "85"}, choice)
        expect(choice["finish_reason"] == "stop", choice)
        asked = json.loads(server.ask("POST", "/v1/chat/completions", dict(body, logprobs=True, top_logprobs=2))[1])
        tokens = asked["choices"][0]["logprobs"]["content"]
        expect(b"".join(bytes(token["bytes"]) for token in tokens) == b"85", f"tokens are the text: {tokens}")
        for token in tokens:
            best = token["top_logprobs"]
            expect(len(best) == 2 and best[0]["logprob"] == token["logprob"] >= best[1]["logprob"], f"best: {best}")
        status, text, _ = server.ask("POST", "/v1/chat/completions", dict(body, top_logprobs=2))
        expect(status == 400 and "logprobs: true" in text, f"top_logprobs alone: {text}")
        text = server.ask("POST", "/v1/chat/completions",
                          dict(body, stream=True, stream_options={"include_usage": True}))[1]
        events = [json.loads(event[6:]) for event in text.split("\n\n")[:-2]]
        expect(events[0]["choices"][0]["delta"]["role"] == "assistant", "who speaks")
        said = "".join(e["choices"][0]["delta"].get("content", "") for e in events if e["choices"])
        expect(said == "85" and events[-1]["usage"]["completion_tokens"] == 2, f"{said} {events[-1]}")
        server.end()


def test_file_sampling(plain):
    """What the model's file says of sampling is where a request does not."""
    with tempfile.TemporaryDirectory() as folder:
        keys = {"general.sampling.temp": 3.0, "general.sampling.top_k": 7}
        server = Served("--invariant", model=with_keys(MODEL, folder, "sampling.gguf", keys))
        body = {"prompt": "3", "max_tokens": 20, "seed": 5}
        hot, cold = plain.complete(dict(body, temperature=3, top_k=7)), plain.complete(body)
        expect(server.complete(body) == hot != cold, "the file's sampling is what is drawn by")
        expect(server.complete(dict(body, temperature=1, top_k=0)) == cold, "what a request says comes first")
        server.end()


def test_tools():
    """Answers that call a function: JSON by a schema, in the form that the template teaches."""
    if not os.path.exists(STORIES):
        return print("skipped: no ../shared/models, so no model that can write JSON")
    teaches = 'Respond in the format {"name": function name, "parameters": dictionary}'
    turns = ("{% for m in messages %}{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments.city }}"
             "{% else %}{{ m.content }}{% endif %}{% endfor %}{% if tools %}" + "{# " + teaches + " #}{% endif %}")
    schema = {"type": "object", "required": ["name", "parameters"], "additionalProperties": False, "properties": {
        "name": {"const": "weather"}, "parameters": {
            "type": "object", "required": ["city"], "additionalProperties": False,
            "properties": {"city": {"enum": ["Oslo", "Rome"]}}}}}
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    with tempfile.TemporaryDirectory() as folder:
        server = Served(model=with_template(STORIES, folder, "tools.gguf", turns))
        body = {"messages": [{"role": "user", "content": "Once upon a time"}], "tools": tools, "temperature": 0,
                "max_tokens": 100, "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
        answer = json.loads(server.ask("POST", "/v1/chat/completions", body)[1])
        choice = answer["choices"][0]
        expect(choice["finish_reason"] == "tool_calls" and choice["message"]["content"] is None, choice)
        call = choice["message"]["tool_calls"][0]
        expect(call["type"] == "function" and call["function"]["name"] == "weather" and call["id"], call)
        city = json.loads(call["function"]["arguments"])["city"]
        expect(city in ("Oslo", "Rome"), call)
        text = server.ask("POST", "/v1/chat/completions", dict(body, stream=True))[1]
        choices = [json.loads(event[6:])["choices"][0] for event in text.split("\n\n")[:-2]]
        said = "".join(c["delta"].get("content", "") for c in choices)
        calls = [c["delta"]["tool_calls"] for c in choices if "tool_calls" in c["delta"]]
        expect(said == "" and len(calls) == 1 and calls[0][0]["index"] == 0, text)
        expect(calls[0][0]["function"] == call["function"], calls)
        expect(choices[-1]["finish_reason"] == "tool_calls", choices[-1])
        # Without tools the same text is text.
        plain = json.loads(server.ask("POST", "/v1/chat/completions", dict(body, tool_choice="none"))[1])
        expect("weather" in plain["choices"][0]["message"]["content"], plain)
        # The call goes back to the template, its arguments as an object.
        back = dict(body, messages=body["messages"] + [dict(choice["message"]), {
            "role": "tool", "tool_call_id": call["id"], "content": "sunny"}])
        status, text, _ = server.ask("POST", "/v1/chat/completions", back)
        expect(status == 200, text)
        for wrong, word in [([{}], "tool_calls[0].function"), ("x", "tool_calls"),
                            ([{"function": {"name": "a", "arguments": "["}}], "arguments"),
                            ([{"function": {"arguments": "{}"}}], "name")]:
            status, text, _ = server.ask("POST", "/v1/chat/completions", dict(body, messages=[
                {"role": "assistant", "content": None, "tool_calls": wrong}]))
            expect(status == 400 and word in text, f"{wrong}: {status} {text}")
        status, text, _ = server.ask("POST", "/v1/chat/completions", dict(body, tool_choice="required"))
        expect(status == 400 and "tool_choice" in text, text)
        server.end()


def readable(text):
    """Bytes that are no characters are one sign, however many a replacement makes of them."""
    return re.sub("\ufffd+", "\ufffd", text)


def test_states():
    """A model whose states go on with every token: texts are those of quern run, whoever else is served, and of what
    was computed before there is what a prompt has all of."""
    with tempfile.TemporaryDirectory() as folder:
        model = random_mamba(MODEL, folder)

        def run(prompt, count):
            made = subprocess.run([QUERN, "run", model, "--prompt", prompt, "--tokens", str(count), "--invariant"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, timeout=120)
            return readable(made.stdout.decode(errors="replace").removesuffix("\n"))

        server = Served("--invariant", "--parallel", "3", model=model)
        asked = [(prompt * (1 + i % 4), 5 + i) for i, prompt in enumerate(prompts(11))] + [("12+3=" * 60, 9)]
        wanted = [run(prompt, count) for prompt, count in asked]
        expect(len(set(wanted)) > 10, f"texts of one model that differ: {wanted}")
        for _ in range(2):  # the second time beside what the first has left
            with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:
                texts = list(pool.map(lambda a: server.complete(
                    {"prompt": a[0], "max_tokens": a[1], "temperature": 0}), asked))
            for text, own, (prompt, _) in zip(texts, wanted, asked):
                expect(readable(text) == own, f"{prompt}: {text!r}, not {own!r}")

        def usage(prompt, count):
            body = {"prompt": prompt, "max_tokens": count, "temperature": 0}
            answer = json.loads(server.ask("POST", "/v1/completions", body)[1])
            expect(readable(answer["choices"][0]["text"]) == run(prompt, count), f"{prompt} after others")
            return answer["usage"]["prompt_tokens_details"]["cached_tokens"], answer["usage"]["prompt_tokens"]

        _, tokens = usage("77+88=", 1)
        expect(usage("77+88=5", 6)[0] == tokens, "what begins with all of a text goes on from there")
        expect(usage("77+88=6", 6)[0] == tokens, "and so does another")
        expect(usage("77+89=", 6)[0] == 0, "of a part there is no state")
        stopped = server.ask("POST", "/v1/completions", {"prompt": "1+2=", "max_tokens": 30, "temperature": 0,
                                                         "stop": [run("1+2=", 1)]})[1]
        expect(json.loads(stopped)["choices"][0]["text"] == "", stopped)
        expect(usage("1+2=", 30)[0] == 0, "a stopped answer leaves no beginning")
        server.end()


def test_page(screenshot=None):
    if CHROMIUM is None:
        return print("skipped: there is no chromium, so the page was not opened")
    with tempfile.TemporaryDirectory() as folder:
        server = Served(model=with_template(MODEL, folder, "sums.gguf", "{{ messages[-1].content }}"))
        with Browser(f"http://127.0.0.1:{server.port}/") as page:
            name = page.wait("document.getElementById('model')?.textContent")
            expect(name == "sums.gguf", "the model's name is shown")
            for turn, (question, answer) in enumerate([("27+58=", "85"), ("3+4=", "7")]):
                page.value(f"document.getElementById('temperature').value = 0;"
                           f"document.getElementById('text').value = {question!r};"
                           "document.getElementById('form').requestSubmit()")
                said = page.wait(f"document.querySelectorAll('.assistant')[{turn}]?.textContent &&"
                                 "document.getElementById('send').textContent === 'Send' &&"
                                 f"document.querySelectorAll('.assistant')[{turn}].textContent")
                expect(said == answer, f"the page says {said!r} to {question}")
            expect(page.value("document.querySelectorAll('.error').length") == 0, "no errors")
            if screenshot:
                page.screenshot(screenshot)
        server.end()


def leave(server, body):
    """A client that goes away in the middle of a stream."""
    data = json.dumps(dict(body, stream=True, max_tokens=40)).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                  b"Content-Length: %d\r\n\r\n" % (server.port, len(data)) + data)
        s.recv(64)


def crawl(server, body):
    """A client that reads a stream byte by byte."""
    data = json.dumps(dict(body, stream=True)).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n"
                  b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (server.port, len(data)) + data)
        text = b""
        while byte := s.recv(7):
            text += byte
    return "".join(json.loads(event)["choices"][0]["text"]
                   for event in re.findall(r"^data: (\{.*\})", text.decode(), re.M))


def test_crowd(server):
    bodies = [{"prompt": prompt * (1 + i % 5), "max_tokens": 1 + i % 11, "temperature": 0}
              for i, prompt in enumerate(prompts(64))]
    alone = [server.complete(body) for body in bodies]
    before, start = server.metrics(), server.memory()
    barrier = threading.Barrier(64)

    def client(i):
        barrier.wait()
        got = []
        for turn in range(3):
            body = bodies[(i + 17 * turn) % 64]
            kind = (i + turn) % 8
            if kind == 0:
                leave(server, body)
            elif kind == 1:
                server.ask("POST", "/v1/completions", b'{"prompt": ')
            elif kind == 2:
                got.append((body, crawl(server, body)))
            elif kind < 5:
                got.append((body, server.stream(body)))
            else:
                got.append((body, server.complete(body)))
        return got

    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        answers = [pair for got in pool.map(client, range(64)) for pair in got]
    wanted = {json.dumps(body): text for body, text in zip(bodies, alone)}
    wrong = [(body, text) for body, text in answers if text != wanted[json.dumps(body)]]
    expect(not wrong, f"{len(wrong)} of {len(answers)} answers differ from those alone: {wrong[:2]}")
    for _ in range(100):
        after = server.metrics()
        if after["answers_active"] == 0 and after["requests_waiting"] == 0:
            break
    expect(after["answers_active"] == 0, "nothing is left under way")
    ended = sum(after[f"answers_{how}_total"] for how in ("finished", "cancelled", "failed"))
    expect(ended == after["requests_total"], f"every request ended: {after}")
    expect(after["answers_failed_total"] == before["answers_failed_total"], "none failed")
    expect(after["cached_tokens_total"] > before["cached_tokens_total"], "prompts that begin alike are not run twice")
    grown = server.memory() - start
    expect(grown < 64 << 10, f"memory grew by {grown} KiB")
    print(f"{len(answers)} answers of 64 clients, {after['steps_total'] - before['steps_total']:.0f} steps, "
          f"memory +{grown} KiB")


def main():
    test_chat()
    test_tools()
    test_states()
    test_page(sys.argv[3] if len(sys.argv) > 3 else None)
    server = Served("--invariant", "--parallel", "6", "--queue", "128")
    test_forms(server)
    test_refusals(server)
    test_file_sampling(server)
    test_crowd(server)
    server.end()
    with tempfile.NamedTemporaryFile("w", suffix=".key") as key:
        key.write("a secret\n")
        key.flush()
        server = Served("--key-file", key.name, "--queue", "0")
        for headers, status in [({}, 401), ({"Authorization": "Bearer a secre"}, 401),
                                ({"Authorization": "Bearer a secret"}, 200)]:
            expect(server.ask("GET", "/v1/models", headers=headers)[0] == status, f"{headers}: {status}")
        expect(server.ask("GET", "/health")[0] == 200, "health needs no key")
        server.end()
    if FAILED:
        raise SystemExit(f"{len(FAILED)} failed")
    print("serve: all as it should be")


main()
