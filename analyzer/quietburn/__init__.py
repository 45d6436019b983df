"""quietburn reads an LLM gateway ledger offline and finds where healthy signals contradict what callers got."""
