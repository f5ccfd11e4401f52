"""Definitions of exported programs that replace some of the library's."""

from __future__ import annotations

import sys
from pathlib import Path


def user_line() -> str:
    """The line that called the program."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
