"""The made-up project and its recorded sessions."""
