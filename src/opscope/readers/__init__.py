"""File -> Capture: one module per format, each with match(source) and read(source, options)."""
