"""Networks as they are evaluated: parameters, BatchNorm, traced graphs."""
