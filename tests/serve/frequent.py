"""The command, with a service that looks for new lists ten times a second: tests wait for it."""

from __future__ import annotations

from edgeveil.cli import app
from edgeveil.serve import served_series


def main() -> int:
    served_series._CHECK_EVERY, served_series._CHECK_EVERY_AFTER_ERROR = 0.1, 0.3
    return app.main()
