"""Permutation symmetries of networks: hidden units in another order compute the same."""
