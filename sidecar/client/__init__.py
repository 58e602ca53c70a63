"""The thin client. Importing it loads no faiss, torch, numpy, onnxruntime or sqlite."""
