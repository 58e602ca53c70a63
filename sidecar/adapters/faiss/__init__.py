"""Vector indexes on FAISS."""
