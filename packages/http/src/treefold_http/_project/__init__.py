"""The files of a project: modules, boot files, handlers, mounts, and the plans of routes."""
