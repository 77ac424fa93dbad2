"""Vectors, curves, planes and grids in weight space."""
