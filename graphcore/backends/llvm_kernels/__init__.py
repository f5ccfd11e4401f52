"""Scheduled graphs as machine code: one native function, made with LLVM, for all sizes."""
