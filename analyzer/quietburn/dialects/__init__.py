"""What the keys of a log mean: mappings, how a dialect is recognised, and how one is proposed."""
