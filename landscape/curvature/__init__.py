"""Curvature of the loss: Hessian products, eigenvalues, spectral density, the flat subspace and direction factors.

The eigenvalue solver is our own Krylov method (``krylov.py``). scipy's ``eigsh`` would be a new dependency of 140 MB,
works on the CPU only, and finds a fixed number of eigenvalues, not all above a cut. curvlinops 3.0 would add scipy and
eight more packages (backpack, einconv, einops, linear_operator, ...). A product differentiated twice from scratch
costs 3.8 times a gradient, and about 2.4 times with the graphs that ``products.py`` keeps between products.
"""
