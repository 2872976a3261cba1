"""Lets the tests of the plugin start pytest themselves."""

pytest_plugins = ["pytester"]
