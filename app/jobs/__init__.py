"""Who executes a plan: a pool of this machine for the terminal, or durable jobs on workers for the service."""
