"""What users call: tensors with named dims, and functions of them."""
