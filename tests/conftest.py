"""Fixtures for every test: the lab that drives real clients with a scripted model."""

pytest_plugins = ["tests.lab.pytest_plugin"]
