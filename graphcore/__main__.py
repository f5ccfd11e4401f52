"""`python -m graphcore`: the demo."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the demo; 130 if it was interrupted."""
    try:
        from graphcore.demo.program import run

        run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
