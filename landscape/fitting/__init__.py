"""Fitting curves between minima."""
