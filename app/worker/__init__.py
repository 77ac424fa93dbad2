"""The worker process and its child processes."""
