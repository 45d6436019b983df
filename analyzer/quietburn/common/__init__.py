"""What every room uses: the columns of an event, SQL text, messages, configuration, files that nobody named."""
