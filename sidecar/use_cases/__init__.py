"""One module a capability. They know the domain and the ports, and nothing of gRPC, SQLite or FAISS."""
