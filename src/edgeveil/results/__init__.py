"""What a release gives: values with guarantee and provenance, as tables, files and folders."""
