"""Curvature of the loss: Hessian products, eigenvalues, spectral density, the flat subspace and direction factors.

The eigenvalue solver is our own Krylov method (``krylov.py``): scipy's ``eigsh`` works on the CPU only, finds a fixed
number of eigenvalues, not all above a cut, and cannot be saved on the way. curvlinops 3.0 would add six more packages
(backpack, einconv, einops, linear_operator, opt_einsum, unfoldNd), and its products cost more: ``docs/theory.md`` has
the comparison. ``products.py`` keeps the graphs of the first differentiation between products.
"""
