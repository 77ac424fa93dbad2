"""Pruning methods: hooks around the training loop that make groups of a partition zero.

`catalog` lists them with their options, without torch. `method.Method` is the interface, `builder.build_method` makes
the method of a run. One file is one method or a close family.
"""
