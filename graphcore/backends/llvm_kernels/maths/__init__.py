"""Elementary functions as instructions: branch-free, of IEEE operations only."""
