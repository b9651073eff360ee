"""Questions about a model: which ways of capturing work on it, and what it costs. Answered by running it."""
