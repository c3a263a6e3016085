"""Words to embeddings: encoders, query generators, and what is done with queries."""
