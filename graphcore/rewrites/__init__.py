"""What a program is equal to: lowering, derivatives, simplification, and their order."""
