"""Estimated surfaces: means over all samples at many points, from a part of the sample-point pairs, with errors."""
