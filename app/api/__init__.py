"""The REST API: `create_app` in `app.api.application` wires it."""
