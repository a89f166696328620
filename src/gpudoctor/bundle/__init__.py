"""Makes support bundles that are safe to send, and compares bundles and machines."""
