"""The subcommands of `valley`, and the client that those against a server use."""
