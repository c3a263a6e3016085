"""`make bench-feedback`: "this was the right document", told to an index and to what others offer for it."""
