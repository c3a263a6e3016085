"""Stage 1: from documents and queries to a trained model."""
