"""Trees, edits and pairs of trees for the tests of locks."""
