"""Parts that every other room uses: errors, names and quoting, one statement as data."""
