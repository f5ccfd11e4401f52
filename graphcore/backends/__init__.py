"""How a program runs."""
