"""What all functions of the frontend use: tensors, operands, arguments, structures, refusals."""
