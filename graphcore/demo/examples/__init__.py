"""Programs to read, run and change: `python -m graphcore --example NAME` shows and runs one."""
