"""What a rule's author needs in a checkout: the files of a new rule, checks in words, and its fixtures tried."""
