"""Builders, fakes and conformance suites, public, for plugin authors and our own tests."""
