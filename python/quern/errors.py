"""What can go wrong."""

from __future__ import annotations


class QuernError(Exception):
    """An error of Quern: a sentence, and its parts.

    Attributes:
        code: what kind it is: one of ``quern.error_codes``, such as ``"shape_mismatch"``.
        op, operand, expected, got: the parts of the sentence, where they apply, else ``""``.
        where: label of the block, number of the node, or name of the graph.
        suggestion: a name that there is, of one that there is not.
    """

    def __init__(self, message: str, code: str = "invalid", op: str = "", operand: str = "", expected: str = "",
                 got: str = "", where: str = "", suggestion: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.op = op
        self.operand = operand
        self.expected = expected
        self.got = got
        self.where = where
        self.suggestion = suggestion

    def __reduce__(self):
        return QuernError, (str(self), self.code, self.op, self.operand, self.expected, self.got, self.where,
                            self.suggestion)
