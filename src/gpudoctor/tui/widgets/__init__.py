"""The widgets, one module per area of the screen."""
