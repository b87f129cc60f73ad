"""How fast Penstock is, each figure beside what this machine can do at all, measured in the same run."""
