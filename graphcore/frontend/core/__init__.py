"""Shared by all functions of the frontend: tensors, operands, arguments, structures, refusals."""
