"""The errors users see, and the refusal a type rule raises before its operands are known."""

import re

DATES = (
    "make numbers of dates, such as days: (dates - dates[0]) / np.timedelta64(1, 'D'); "
    "of a time that passed, time / np.timedelta64(1, 'D')"
)
"""The cure for dates and times, which are no numbers."""


class GraphError(Exception):
    """A program that graphcore cannot accept; every error of the library derives from it.

    Very long words and lines, such as names given by users, are shortened in the middle.
    """

    def __init__(self, message: str = "") -> None:
        for endless in (r"\S{200,}", r".{4000,}"):
            message = re.sub(endless, lambda found: f"{found[0][:80]}…{found[0][-40:]}", message)
        super().__init__(message)


class GraphTypeError(GraphError, TypeError):
    """An operand or argument of a wrong kind."""


class GraphValueError(GraphError, ValueError):
    """Dims, sizes or values that do not fit."""


class GraphIndexError(GraphError, IndexError):
    """A position outside its dim."""


class GraphWarning(UserWarning):
    """A program that is right as it stands, but is nearly surely not what was meant."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class GraphAttributeError(GraphError, AttributeError):
    """A name that an object does not have."""


class GraphKeyError(GraphValueError, KeyError):
    """A key that a mapping does not have."""

    __str__ = Exception.__str__  # KeyError's own would quote the message, on one line


class GraphFileNotFoundError(GraphValueError, FileNotFoundError):
    """A file that is not there."""


class GraphMemoryError(GraphError, MemoryError):
    """A result that is too large for the memory."""


class DefectError(GraphError):
    """A defect of the compiler, never of the program, such as a wrong name in generated code."""


class ContractError(DefectError):
    """A stage has an op or names that its contract forbids."""


class UnsettledError(DefectError):
    """Rewriting that does not end."""


class Refusal(Exception):
    """The refusal of operands by a type rule; `Node` adds the operands and their lines.

    Parameters
    ----------
    reason
        What is wrong, naming dims and sizes.
    cure
        What to do instead, or "".
    kind
        The error to raise for the user.
    """

    def __init__(
        self, reason: str, cure: str = "", kind: type[GraphError] = GraphValueError
    ) -> None:
        super().__init__(reason)
        self.reason, self.cure, self.kind = reason, cure, kind


def require(
    condition: object, reason: str, cure: str = "", kind: type[GraphError] = GraphValueError
) -> None:
    """Refuse the operands unless `condition` holds."""
    if not condition:
        raise Refusal(reason, cure, kind)
