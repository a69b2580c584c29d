"""How much memory this process may use: for checks before anything is charged."""

from __future__ import annotations

import os
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def total_memory() -> int:
    """Bytes of memory that this process may use at most, by physical memory and cgroup limits."""
    limits = [2**62]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit in _LIMITS:
        try:
            limits.append(int(Path(limit).read_text()))
        except (OSError, ValueError):  # another system, or "max"
            continue
    return min(limits)
