"""Rule files: model, loading, wording."""
