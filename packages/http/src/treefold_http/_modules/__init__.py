"""The Python modules of one project, apart from those of every other one."""
