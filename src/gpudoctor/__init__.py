"""gpudoctor finds out what is wrong with an NVIDIA GPU machine, says why, and walks a person through the fix."""

__version__ = "0.1.0"
