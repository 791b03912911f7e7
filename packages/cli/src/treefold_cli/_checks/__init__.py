"""Questions about a project that is not served: its findings, its tests, its types."""
