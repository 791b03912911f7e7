"""From exceptions to responses: problem documents, exception handlers, the page for a 404."""
