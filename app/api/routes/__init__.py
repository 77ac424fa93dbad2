"""The REST routes, grouped by resource."""
