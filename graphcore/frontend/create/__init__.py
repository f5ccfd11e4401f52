"""New tensors: inputs, constants and ranges."""
