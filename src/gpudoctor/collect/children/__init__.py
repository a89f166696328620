"""Programs of a few lines that gpudoctor runs as processes of their own and that print what they read."""
