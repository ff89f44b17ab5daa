"""One module per format: `read(path, ...)` gives a `Loaded`, `write(table, folder, ...)` writes labels."""
