"""`make demo`: an index of the documentation in the user's own Python, built from nothing."""
