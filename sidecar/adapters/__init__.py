"""What the ports are made of: one third-party library a module."""
