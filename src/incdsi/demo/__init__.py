"""`make demo`: an index over the documentation inside the user's own Python, from nothing."""
