"""Lists that a request filters, orders and pages."""
