"""For every test: the lab that drives real clients with a scripted model, and no deadlines for generated examples."""

from hypothesis import settings

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

pytest_plugins = ["tests.lab.pytest_plugin"]
