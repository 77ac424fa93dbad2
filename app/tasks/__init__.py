"""What a task computes: the only package of app that imports torch."""
