"""The command line: a client like any other, except for `serve`, `bench` and `demo`."""
