"""The process: composition root, lifecycle, and the children it keeps."""
