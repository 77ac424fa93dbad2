"""Records and landscape.h5."""
