"""Request bodies: reading, disconnects, forms, multipart, uploads and their temporary files."""
