"""Where evidence lies: live hosts, bundles, folders, logs, standard input. Gives texts, knows nothing of their meaning."""
