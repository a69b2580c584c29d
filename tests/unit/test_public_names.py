"""The public names, pinned: a change here is a change for users."""

from __future__ import annotations

import subprocess
import sys

import edgeveil

PUBLIC = {
    *("Graph", "History", "NodeSet", "as_graph", "open_graph", "read_graph", "save_graph"),
    *("Guarantee", "Ledger", "NoiseSource", "Release", "Suggestions", "PrivateEmbedding"),
    "PrivateNodeClassifier",
    *("Predictions", "aggregate", "classify", "suggest", "refresh", "rank", "embed", "release"),
    *("release_to", "price", "recommended", "audit", "evaluate"),
}
PARTS = {"conformance", "datasets", "errors", "flow", "jobs", "mechanisms"}
HOMES = {"conformance": "testing.conformance", "datasets": "graph.datasets"}


def test_the_public_names_are_these():
    assert set(edgeveil.__all__) == PUBLIC
    for name in edgeveil.__all__:
        assert getattr(edgeveil, name).__module__.startswith("edgeveil.")
    assert not hasattr(edgeveil, "no_such_name")


def test_the_parts_are_reached_by_name():
    assert set(dir(edgeveil)) == PUBLIC | PARTS
    for part in PARTS:
        assert getattr(edgeveil, part).__name__ == f"edgeveil.{HOMES.get(part, part)}"


def test_no_name_hides_a_module_nor_a_module_a_name():
    """Of a package, the attribute with the name of a module is that module, and nothing else is."""
    script = (
        "import pkgutil, importlib, sys, types, edgeveil\n"
        "names = [m.name for m in pkgutil.walk_packages(edgeveil.__path__, 'edgeveil.')]\n"
        "for name in names:\n"
        "    if '__main__' not in name: importlib.import_module(name)\n"
        "loaded = [n for n in names if n in sys.modules]\n"
        "def at(n): return getattr(sys.modules[n.rpartition('.')[0]], n.rpartition('.')[2])\n"
        "hidden = [n for n in loaded if at(n) is not sys.modules[n]]\n"
        "public = [getattr(edgeveil, n) for n in edgeveil.__all__]\n"
        "hidden += [part for part in public if isinstance(part, types.ModuleType)]\n"
        "print(hidden)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_a_call_loads_no_library_that_it_does_not_need():
    script = (
        "import sys, edgeveil as ev\n"
        "ev.rank(ev.datasets.social_network(60, average_degree=6).graph, 7, epsilon=1.0)\n"
        "foreign = 'sklearn', 'pandas', 'pyarrow', 'gensim', 'networkx', 'ray', 'matplotlib'\n"
        "print([m for m in foreign if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_importing_the_package_loads_nothing_heavy():
    script = (
        "import sys, edgeveil\n"
        "heavy = 'numpy', 'numba', 'polars', 'scipy', 'sklearn', 'pandas', 'pyarrow', 'ray'\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
