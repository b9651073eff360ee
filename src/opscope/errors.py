"""The errors that opscope raises on purpose: one clear line each, meant for the person who reads it."""


class OpscopeError(Exception):
    """Something a user can act on. The command line prints its text and exits with 2."""


class BadInput(OpscopeError):
    """A file or object that cannot be read: the text says what was found, where, and what to do."""
