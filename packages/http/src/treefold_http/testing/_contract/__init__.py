"""The contract in tests: answers held against it, and the tree of calls of its clients."""
