"""sigps."""
