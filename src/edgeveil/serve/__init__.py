"""The service: each member sees its own list over HTTP, and nobody else's. See docs/service.md."""
