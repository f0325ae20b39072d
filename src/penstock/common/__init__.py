"""What all rooms use: checks of options, names that a user picks by, locks, and SQLite files that are shared."""
