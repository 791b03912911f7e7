"""The plugin of a treefold application: settings, lifespan, readiness."""
