"""The REST API: `create_app` in `valleyscope.app.api.app` wires it."""
