"""Orders of hidden units: which of them a network allows, and which brings two networks closest.

From a network to an aligned one, in the order of reading:

1. `symmetries.py` asks for all groups of exchangeable units, tries each at random weights, and permutes state dicts.
2. `axis_trace.py` runs the traced network node by node on an example. Each value (`values.py`) is a tensor with, for
   each of its axes, the unit that every index belongs to; a parameter begins with units of its own.
3. A rule for each operation says which units of its inputs and parameters are the same: `layer_rules.py` (linear,
   convolution, norms, attention), `elementwise_rules.py` (activations, sums, pooling, products), `shape_rules.py`
   (reshape, slices, concatenation, padding). What has no rule keeps its order, and is named.
4. `units.py` joins them, by union-find. For x -> Linear(2, 3) -> ReLU -> Linear(3, 1): the three rows of the first
   weight, its biases, and the three columns of the second weight become the same three units. Inputs and outputs are
   fixed. Units that occur at the same places everywhere can change places: a group.
5. `weight_matching.py` and `activation_matching.py` choose an order of each group; `align.py` checks the result.
"""
