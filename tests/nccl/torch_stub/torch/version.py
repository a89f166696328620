"""The build that this stands for."""

cuda = "12.8"
