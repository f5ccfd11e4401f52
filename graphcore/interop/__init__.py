"""Arrays of other libraries: what they carry beside values, through a program and back."""
