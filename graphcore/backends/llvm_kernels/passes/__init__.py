"""The passes that serve the costs of machine code alone."""
