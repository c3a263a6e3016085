"""A living index: documents come, change and go, are taught, and are told wrong things; what is left of its quality."""
