"""What the index is compared with, behind one protocol: fit, add, search."""
