"""HTTP as data: header fields, cookies, dates, ranges, media types, JSON, limits and errors."""
