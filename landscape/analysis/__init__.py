"""Surfaces, profiles, barriers, sharpness and the verdict."""
