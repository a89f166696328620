"""Log patterns: lines written as they look, with typed holes, and the one scan that finds all of them."""
