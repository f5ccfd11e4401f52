"""What a package that is none of ours adds to the library."""
