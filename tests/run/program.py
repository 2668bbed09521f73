"""Programs run by tests of the command line: quern, and what it has to say."""
import subprocess
import sys


class Program:
    def __init__(self, path):
        self.path = path

    def run(self, *args, code=0, **kwargs):
        """Standard output and error of a run that has to end with `code`."""
        result = subprocess.run([self.path, *args], capture_output=True, timeout=120, check=False, **kwargs)
        if result.returncode != code:
            sys.exit(f"{args} ends with {result.returncode}: {result.stdout!r} {result.stderr!r}")
        return result.stdout.decode(), result.stderr.decode()

    def fails(self, sentence, *args, code=1, **kwargs):
        """A run that fails with one line that has the sentence in it."""
        out, err = self.run(*args, code=code, **kwargs)
        expect(sentence in err and err.count("\n") == 1 and not out, args, "must say", repr(sentence), "not", out, err)


def expect(condition, *what):
    if not condition:
        sys.exit(" ".join(str(w) for w in what))
