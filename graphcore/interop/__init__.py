"""Arrays of other libraries: their coordinates, followed through a program to its results."""
