"""Time as the recorded board spends it."""

milliseconds = 0.0
