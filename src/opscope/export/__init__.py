"""Capture -> something else: one module per output."""
