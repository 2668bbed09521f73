"""What the scripts here share: programs that are run, and what is expected of them."""
import glob
import os
import signal
import subprocess
import sys

# Who is started in the background of a shell ignores interrupts, and so do the programs that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def run(*command, code=0, **kwargs):
    """The result of a command that has to end with `code`; its output is bytes, or text with `text=True`."""
    command = [str(word) for word in command]
    result = subprocess.run(command, capture_output=True, check=False, **kwargs)
    if result.returncode != code:
        out, err = (text if isinstance(text, str) else text.decode() for text in (result.stdout, result.stderr))
        sys.exit(f"{' '.join(command)}\n  exit code {result.returncode}, not {code}\n{out}{err}")
    return result


def said(*command, code=0, **kwargs):
    """What a command says: its standard output, or its standard error where it has to fail."""
    result = run(*command, code=code, text=True, **kwargs)
    return result.stdout if code == 0 else result.stderr


def expect(condition, *what):
    if not condition:
        sys.exit(" ".join(str(w) for w in what))


def expect_in(text, *parts):
    for part in parts:
        expect(part in text, f"there is no {part!r} in\n{text}")


def expect_typed(share, prints):
    """The manual page and the completions in a folder are those of quern, of whose arguments `prints` gives the output,
    where man and the shells look."""
    for arguments, place in ((["man"], "man/man1/quern.1"),
                             (["completion", "bash"], "bash-completion/completions/quern"),
                             (["completion", "zsh"], "zsh/*/_quern")):
        found = glob.glob(os.path.join(share, place))
        expect(len(found) == 1, f"{share}/{place} is not installed")
        with open(found[0], encoding="utf-8") as f:
            expect(f.read() == prints(*arguments), f"{found[0]} is not what quern {' '.join(arguments)} prints")


class Program:
    """A program whose runs are short: quern."""

    def __init__(self, path):
        self.path = path

    def run(self, *args, code=0, **kwargs):
        """Standard output and error of a run that has to end with `code`."""
        result = run(self.path, *args, code=code, timeout=120, **kwargs)
        return result.stdout.decode(), result.stderr.decode()

    def fails(self, sentence, *args, code=1, **kwargs):
        """A run that fails with one line that has the sentence in it."""
        out, err = self.run(*args, code=code, **kwargs)
        expect(sentence in err and err.count("\n") == 1 and not out, args, "must say", repr(sentence), "not", out, err)
