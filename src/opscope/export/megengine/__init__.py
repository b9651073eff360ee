"""Statistics in MegEngine's style, for captures of every framework."""
