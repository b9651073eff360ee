"""Drop-in faces of older tools: the same calls, with opscope behind them."""
