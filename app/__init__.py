"""Runs and serves: specs and recipes, the plan of an experiment, its runners, settings and the command line."""
