"""The arithmetic of privacy. Nothing in here ever sees a graph."""
