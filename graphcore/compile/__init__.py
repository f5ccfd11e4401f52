"""What compiles a program, and what a compiled program answers."""
