"""The commands that run jobs on Spark: arguments and config files, what is shown meanwhile, signals, exit codes."""
