"""How the documentation is built: staged, made strict, kept offline. Run by ``./run docs``."""
