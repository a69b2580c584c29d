"""numba's cache of compiled functions, in the folder of `loops` instead of numba's own places.

numba's keys hold its version, the processor, the types and the function's own bytecode, but not
that of functions which are inlined or called: after a change there, numba would load old code. So
the name of our folder holds a digest of all of them.

numba's public settings change the cache of all functions in a process, other packages' as well.
This module uses private parts of numba instead; where they are missing, `compiled` compiles
without a cache.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

from edgeveil._internal.files import is_own_folder
from edgeveil._internal.loops import PACKAGE, log, loop_folder, loop_source, loops_changed


class _Locator(_CacheLocator):  # type: ignore[misc]  # numba has no types
    """The folder for the loops of one file; none for files that the digest does not cover."""

    def __init__(self, folder: Path, line: int) -> None:
        self._folder, self._line = folder, line

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Locator | None:
        folder = loop_folder().folder
        if folder is None or Path(file) not in loop_source().stamps or loops_changed():
            return None
        below = Path(file).parent.relative_to(PACKAGE)
        return cls(folder / below, function.__code__.co_firstlineno)

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return loop_source().digest

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Impl(CompileResultCacheImpl):  # type: ignore[misc]  # numba has no types
    _locator_classes = (_Locator,)


class LoopCache(FunctionCache):  # type: ignore[misc]  # numba has no types
    """The cache of one loop. Making it raises RuntimeError if there can be none.

    What cannot be loaded is compiled; what cannot be saved is compiled in every process.
    """

    _impl_class = _Impl

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        if not isinstance(self._impl.locator, _Locator):  # NUMBA_CACHE_LOCATOR_CLASSES is set
            raise RuntimeError("numba was told to keep compiled functions elsewhere")

    def load_overload(self, signature: Any, target: Any) -> Any:
        folder = loop_folder().folder
        try:
            if folder is None or not is_own_folder(folder):
                return None
            return super().load_overload(signature, target)
        except Exception as error:  # noqa: BLE001  (a damaged pickle may raise anything)
            if not isinstance(error, FileNotFoundError):
                log.info("a compiled loop could not be loaded: %s", type(error).__name__)
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        # The source has changed since it was imported: the folder's digest is of other code.
        if loop_folder().problem or loops_changed():
            return
        try:
            super().save_overload(signature, compiled)
        except OSError as error:
            log.warning("compiled loops cannot be kept in %s: %s", self.cache_path, error.strerror)
