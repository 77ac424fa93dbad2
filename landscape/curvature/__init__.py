"""Curvature of the loss: Hessian products, eigenvalues, spectral density, the flat subspace and direction factors.

The eigenvalue solver is our own Krylov method (``krylov.py``, about 130 lines). scipy's ``eigsh`` would add a dependency
of 35 MB, works on the CPU in one precision, cannot find "all eigenvalues above a cut", and keeps no bound on memory that
is known before it starts. curvlinops 3 would add seven packages (backpack, einops, linear_operator and others); its
products differentiate twice from scratch for every vector, which is 3.1 times the cost of a gradient, where graphs that
are kept between products cost 2.1 times.
"""
