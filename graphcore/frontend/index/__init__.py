"""Elements selected along dims, and updated there."""
