"""Every row of every table, as the driver reads it."""

from __future__ import annotations

from typing import Any

from chinook.report import Report, Reports, in_snake_case

TABLES = {
    "Artist": "artist_id, name",
    "Album": "album_id, title, artist_id",
    "Genre": "genre_id, name",
    "MediaType": "media_type_id, name",
    "Track": "track_id, name, album_id, media_type_id, genre_id, composer, milliseconds, bytes,"
    " unit_price",
    "Playlist": "playlist_id, name",
    "PlaylistTrack": "playlist_id, track_id",
    "Employee": "employee_id, last_name, first_name, title, reports_to, birth_date, hire_date,"
    " address, city, state, country, postal_code, phone, fax, email",
    "Customer": "customer_id, first_name, last_name, company, address, city, state, country,"
    " postal_code, phone, fax, email, support_rep_id",
    "Invoice": "invoice_id, customer_id, invoice_date, billing_address, billing_city,"
    " billing_state, billing_country, billing_postal_code, total",
    "InvoiceLine": "invoice_line_id, invoice_id, track_id, unit_price, quantity",
}


def _rows(name: str) -> Any:
    def query(m: Any) -> Any:
        model = getattr(m, name)
        names = [field.attname for field in model._meta.columns]
        return [tuple(getattr(row, n) for n in names) for row in model.objects.all()]

    return query


reports = Reports(
    Report(
        f"All rows of {name}",
        f"SELECT {columns} FROM {in_snake_case(name)}",
        _rows(name),
    )
    for name, columns in TABLES.items()
)
