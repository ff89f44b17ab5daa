"""One module per format: `read(path, ...)` gives a `Loaded`; `folder` also writes."""
