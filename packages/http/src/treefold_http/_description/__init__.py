"""What is known of each route: inputs, answers, messages and words, for documents and locks."""
