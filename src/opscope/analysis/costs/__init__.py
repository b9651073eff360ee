"""What a graph costs: by operator, added up by module, in memory, and on a device."""
