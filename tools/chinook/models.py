"""The eleven tables of the Chinook sample database as models, each as it is on either database.

SQLite has `InvoiceLine.UnitPrice` where PostgreSQL has `invoice_line.unit_price`, so this file is
loaded once for each database, under a module name that ends with it (see `loading.models`).
Nothing of the data is here, and nothing creates these tables.
"""

from __future__ import annotations

import re
from decimal import Decimal

from treefold_orm import CompositePrimaryKey, Model, Reverse, fields

_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")


def _named(name: str) -> str:
    """Return the name of a table or column as this database spells it."""
    return _CAPITAL.sub(r"_\1", name).lower() if __name__.endswith("postgres") else name


def _price(name: str) -> fields.DecimalField[Decimal]:
    """Money: SQLite's NUMERIC columns hold floating point numbers."""
    return fields.DecimalField(
        max_digits=10,
        decimal_places=2,
        storage=None if __name__.endswith("postgres") else "real",
        db_column=_named(name),
    )


class Artist(Model):
    """A band or a person."""

    id = fields.AutoField(db_column=_named("ArtistId"))
    name = fields.CharField(max_length=120, null=True, db_column=_named("Name"))
    albums: Reverse[Album]

    class Meta:
        table = _named("Artist")
        managed = False


class Album(Model):
    """Tracks that came out together."""

    id = fields.AutoField(db_column=_named("AlbumId"))
    title = fields.CharField(max_length=160, db_column=_named("Title"))
    artist = fields.ForeignKey(Artist, related_name="albums", db_column=_named("ArtistId"))
    artist_id: int
    tracks: Reverse[Track]

    class Meta:
        table = _named("Album")
        managed = False


class Genre(Model):
    """A kind of music."""

    id = fields.AutoField(db_column=_named("GenreId"))
    name = fields.CharField(max_length=120, null=True, db_column=_named("Name"))
    tracks: Reverse[Track]

    class Meta:
        table = _named("Genre")
        managed = False


class MediaType(Model):
    """A format of a file."""

    id = fields.AutoField(db_column=_named("MediaTypeId"))
    name = fields.CharField(max_length=120, null=True, db_column=_named("Name"))
    tracks: Reverse[Track]

    class Meta:
        table = _named("MediaType")
        managed = False


class Track(Model):
    """One piece of music, and what it costs."""

    id = fields.AutoField(db_column=_named("TrackId"))
    name = fields.CharField(max_length=200, db_column=_named("Name"))
    album = fields.ForeignKey(Album, null=True, related_name="tracks", db_column=_named("AlbumId"))
    media_type = fields.ForeignKey(
        MediaType, related_name="tracks", db_column=_named("MediaTypeId")
    )
    genre = fields.ForeignKey(Genre, null=True, related_name="tracks", db_column=_named("GenreId"))
    composer = fields.CharField(max_length=220, null=True, db_column=_named("Composer"))
    milliseconds = fields.IntegerField(db_column=_named("Milliseconds"))
    bytes = fields.IntegerField(null=True, db_column=_named("Bytes"))
    unit_price = _price("UnitPrice")
    album_id: int | None
    media_type_id: int
    genre_id: int | None
    lines: Reverse[InvoiceLine]

    class Meta:
        table = _named("Track")
        managed = False


class Playlist(Model):
    """Tracks to be played one after the other."""

    id = fields.AutoField(db_column=_named("PlaylistId"))
    name = fields.CharField(max_length=120, null=True, db_column=_named("Name"))
    tracks = fields.ManyToManyField(
        Track, through=f"{__name__}.PlaylistTrack", related_name="playlists"
    )

    class Meta:
        table = _named("Playlist")
        managed = False


class PlaylistTrack(Model):
    """A track of a playlist; both together are the key."""

    pk = CompositePrimaryKey("playlist", "track")
    playlist = fields.ForeignKey(Playlist, related_name="entries", db_column=_named("PlaylistId"))
    track = fields.ForeignKey(Track, related_name="entries", db_column=_named("TrackId"))
    playlist_id: int
    track_id: int

    class Meta:
        table = _named("PlaylistTrack")
        managed = False


class Employee(Model):
    """Somebody who works for the store, and for whom."""

    id = fields.AutoField(db_column=_named("EmployeeId"))
    last_name = fields.CharField(max_length=20, db_column=_named("LastName"))
    first_name = fields.CharField(max_length=20, db_column=_named("FirstName"))
    title = fields.CharField(max_length=30, null=True, db_column=_named("Title"))
    reports_to = fields.ForeignKey(
        "self", null=True, related_name="staff", db_column=_named("ReportsTo")
    )
    birth_date = fields.DateTimeField(zone=None, null=True, db_column=_named("BirthDate"))
    hire_date = fields.DateTimeField(zone=None, null=True, db_column=_named("HireDate"))
    address = fields.CharField(max_length=70, null=True, db_column=_named("Address"))
    city = fields.CharField(max_length=40, null=True, db_column=_named("City"))
    state = fields.CharField(max_length=40, null=True, db_column=_named("State"))
    country = fields.CharField(max_length=40, null=True, db_column=_named("Country"))
    postal_code = fields.CharField(max_length=10, null=True, db_column=_named("PostalCode"))
    phone = fields.CharField(max_length=24, null=True, db_column=_named("Phone"))
    fax = fields.CharField(max_length=24, null=True, db_column=_named("Fax"))
    email = fields.CharField(max_length=60, null=True, db_column=_named("Email"))
    customers: Reverse[Customer]

    class Meta:
        table = _named("Employee")
        managed = False


class Customer(Model):
    """Somebody who buys, and the employee who helps."""

    id = fields.AutoField(db_column=_named("CustomerId"))
    first_name = fields.CharField(max_length=40, db_column=_named("FirstName"))
    last_name = fields.CharField(max_length=20, db_column=_named("LastName"))
    company = fields.CharField(max_length=80, null=True, db_column=_named("Company"))
    address = fields.CharField(max_length=70, null=True, db_column=_named("Address"))
    city = fields.CharField(max_length=40, null=True, db_column=_named("City"))
    state = fields.CharField(max_length=40, null=True, db_column=_named("State"))
    country = fields.CharField(max_length=40, null=True, db_column=_named("Country"))
    postal_code = fields.CharField(max_length=10, null=True, db_column=_named("PostalCode"))
    phone = fields.CharField(max_length=24, null=True, db_column=_named("Phone"))
    fax = fields.CharField(max_length=24, null=True, db_column=_named("Fax"))
    email = fields.CharField(max_length=60, db_column=_named("Email"))
    support_rep = fields.ForeignKey(
        Employee, null=True, related_name="customers", db_column=_named("SupportRepId")
    )
    support_rep_id: int | None
    invoices: Reverse[Invoice]

    class Meta:
        table = _named("Customer")
        managed = False


class Invoice(Model):
    """What a customer bought at once."""

    id = fields.AutoField(db_column=_named("InvoiceId"))
    customer = fields.ForeignKey(Customer, related_name="invoices", db_column=_named("CustomerId"))
    invoice_date = fields.DateTimeField(zone=None, db_column=_named("InvoiceDate"))
    billing_address = fields.CharField(max_length=70, null=True, db_column=_named("BillingAddress"))
    billing_city = fields.CharField(max_length=40, null=True, db_column=_named("BillingCity"))
    billing_state = fields.CharField(max_length=40, null=True, db_column=_named("BillingState"))
    billing_country = fields.CharField(max_length=40, null=True, db_column=_named("BillingCountry"))
    billing_postal_code = fields.CharField(
        max_length=10, null=True, db_column=_named("BillingPostalCode")
    )
    total = _price("Total")
    customer_id: int
    lines: Reverse[InvoiceLine]

    class Meta:
        table = _named("Invoice")
        managed = False


class InvoiceLine(Model):
    """A track on an invoice."""

    id = fields.AutoField(db_column=_named("InvoiceLineId"))
    invoice = fields.ForeignKey(Invoice, related_name="lines", db_column=_named("InvoiceId"))
    track = fields.ForeignKey(Track, related_name="lines", db_column=_named("TrackId"))
    unit_price = _price("UnitPrice")
    quantity = fields.IntegerField(db_column=_named("Quantity"))
    invoice_id: int
    track_id: int

    class Meta:
        table = _named("InvoiceLine")
        managed = False


ALL = (
    Artist,
    Album,
    Genre,
    MediaType,
    Track,
    Playlist,
    PlaylistTrack,
    Employee,
    Customer,
    Invoice,
    InvoiceLine,
)
