"""Measures how well memories are found: data sets, rankers and figures. Not how fast; that is `sidecar bench`."""
