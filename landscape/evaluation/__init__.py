"""Loss and error at many points, fast."""
