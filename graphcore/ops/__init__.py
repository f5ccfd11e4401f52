"""Op declarations, a module for each dialect: what may be said, and of what type it is."""
