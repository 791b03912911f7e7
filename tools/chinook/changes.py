"""Updates, upserts, queues, deletes and copies: what is left in the tables is compared."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from chinook.report import Changes
from treefold_orm import Case, Concat, Count, F, OuterRef, Q, Round, Subquery, Sum, Value, When

changes = Changes()
PRICES = "SELECT track_id, unit_price FROM track"


def prices(m: Any) -> Any:
    return m.Track.objects.values_list("id", "unit_price")


@changes("UPDATE track SET unit_price = 2 WHERE genre_id = 1", look=PRICES, rows=prices)
def whole_price(m: Any) -> None:
    """A price set to a whole number"""
    m.Track.objects.filter(genre=1).update(unit_price=Value(2))


@changes("UPDATE track SET unit_price = unit_price * 2 + 0.01", look=PRICES, rows=prices)
def doubled(m: Any) -> None:
    """Prices computed from themselves"""
    m.Track.objects.update(unit_price=F("unit_price") * 2 + Decimal("0.01"))


@changes(
    "UPDATE track SET unit_price = ROUND(CAST(unit_price * 1.15 AS NUMERIC), 2)",
    look=PRICES,
    rows=prices,
)
def raised(m: Any) -> None:
    """Prices raised by 15 percent, rounded to cents by the column"""
    m.Track.objects.update(unit_price=F("unit_price") * Decimal("1.15"))


@changes("UPDATE track SET unit_price = genre_id WHERE genre_id < 5", look=PRICES, rows=prices)
def from_a_key(m: Any) -> None:
    """A decimal from a whole number of another column"""
    m.Track.objects.filter(genre__lt=5).update(unit_price=F("genre_id"))


@changes(
    "UPDATE track SET unit_price = CASE WHEN milliseconds > 300000 THEN 1.49 WHEN genre_id = 1 THEN"
    " 1 ELSE unit_price END",
    look=PRICES,
    rows=prices,
)
def by_case(m: Any) -> None:
    """Prices by cases of different types"""
    m.Track.objects.update(
        unit_price=Case(
            When(milliseconds__gt=300_000, then=Value(Decimal("1.49"))),
            When(genre=1, then=Value(1)),
            default=F("unit_price"),
        )
    )


@changes(
    "UPDATE invoice SET total = (SELECT SUM(l.unit_price * l.quantity) + 1 FROM invoice_line l"
    " WHERE l.invoice_id = invoice.invoice_id) WHERE invoice_id < 100",
    look="SELECT invoice_id, total FROM invoice",
    rows=lambda m: m.Invoice.objects.values_list("id", "total"),
)
def recomputed(m: Any) -> None:
    """Totals recomputed from the lines by a subquery"""
    lines = m.InvoiceLine.objects.filter(invoice=OuterRef("pk")).values("invoice")
    total = Subquery(lines.annotate(t=Sum(F("unit_price") * F("quantity")) + 1).values("t"))
    m.Invoice.objects.filter(id__lt=100).update(total=total)


@changes(
    "UPDATE invoice SET invoice_date = hired.hire_date FROM (SELECT c.customer_id, e.hire_date FROM"
    " customer c JOIN employee e ON e.employee_id = c.support_rep_id) AS hired WHERE"
    " hired.customer_id = invoice.customer_id",
    look="SELECT invoice_id, invoice_date FROM invoice",
    rows=lambda m: m.Invoice.objects.values_list("id", "invoice_date"),
)
def dates_of_others(m: Any) -> None:
    """Times taken from a related table"""
    agents = m.Customer.objects.filter(pk=OuterRef("customer"))
    m.Invoice.objects.update(invoice_date=Subquery(agents.values("support_rep__hire_date")))


@changes(
    "UPDATE customer SET company = last_name || ' & Co' WHERE company IS NULL",
    look="SELECT customer_id, company FROM customer",
    rows=lambda m: m.Customer.objects.values_list("id", "company"),
)
def companies(m: Any) -> None:
    """Missing companies filled from names"""
    m.Customer.objects.filter(company=None).update(company=Concat("last_name", Value(" & Co")))


@changes(
    "INSERT INTO genre (genre_id, name) VALUES (1, 'Rock!'), (900, 'New') ON CONFLICT (genre_id) DO"
    " UPDATE SET name = EXCLUDED.name",
    look="SELECT genre_id, name FROM genre",
    rows=lambda m: m.Genre.objects.values_list("id", "name"),
)
def upserted(m: Any) -> None:
    """Rows inserted, or updated where the key exists"""
    m.Genre.objects.bulk_create(
        [m.Genre(id=1, name="Rock!"), m.Genre(id=900, name="New")],
        update_conflicts=["name"],
        unique_fields=["id"],
    )


@changes(
    "INSERT INTO playlist_track (playlist_id, track_id) VALUES (1, 1), (1, 3402), (9, 1)"
    " ON CONFLICT DO NOTHING",
    look="SELECT playlist_id, track_id FROM playlist_track",
    rows=lambda m: m.PlaylistTrack.objects.values_list("playlist", "track"),
)
def ignored(m: Any) -> None:
    """Rows of a key of two columns, those that exist ignored"""
    rows = [(1, 1), (1, 3402), (9, 1)]
    m.PlaylistTrack.objects.bulk_create(
        [m.PlaylistTrack(playlist_id=p, track_id=t) for p, t in rows], ignore_conflicts=True
    )


@changes(
    "DELETE FROM playlist_track WHERE playlist_id = 1 AND track_id IN (SELECT track_id FROM track"
    " WHERE genre_id = 1)",
    look="SELECT playlist_id, track_id FROM playlist_track",
    rows=lambda m: m.PlaylistTrack.objects.values_list("playlist", "track"),
)
def removed(m: Any) -> None:
    """Rows of a key of two columns deleted by a condition on a relation"""
    m.PlaylistTrack.objects.filter(playlist=1, track__genre=1).delete()


@changes(
    "INSERT INTO playlist_track (playlist_id, track_id) VALUES (9, 5), (9, 6)",
    "DELETE FROM playlist_track WHERE playlist_id = 9 AND track_id = 3402",
    look="SELECT playlist_id, track_id FROM playlist_track WHERE playlist_id = 9",
    rows=lambda m: m.Playlist.objects.filter(id=9).values_list("id", "tracks"),
)
def many_to_many(m: Any) -> None:
    """Tracks added to a playlist and taken out of it"""
    playlist = m.Playlist.objects.get(id=9)
    playlist.tracks.add(5, 6)
    playlist.tracks.remove(3402)


@changes(
    "DELETE FROM invoice_line WHERE invoice_line_id IN (SELECT invoice_line_id FROM invoice_line"
    " ORDER BY invoice_line_id LIMIT 5)",
    look="SELECT invoice_line_id FROM invoice_line",
    rows=lambda m: m.InvoiceLine.objects.values_list("id"),
)
def queue(m: Any) -> None:
    """The first five rows of a queue, locked, handled and taken out"""
    first = list(m.InvoiceLine.objects.order_by("id").select_for_update()[:5])
    m.InvoiceLine.objects.filter(id__in=[row.id for row in first]).delete()


@changes(
    "UPDATE customer SET support_rep_id = 4 WHERE support_rep_id = 3 AND (SELECT COUNT(*) FROM"
    " invoice i WHERE i.customer_id = customer.customer_id) >= 7",
    look="SELECT customer_id, support_rep_id FROM customer",
    rows=lambda m: m.Customer.objects.values_list("id", "support_rep"),
)
def reassigned(m: Any) -> None:
    """Customers moved, chosen by an aggregate"""
    rows = m.Customer.objects.annotate(n=Count("invoices")).filter(n__gte=7, support_rep=3)
    rows.update(support_rep=4)


@changes(
    "UPDATE employee SET hire_date = '2001-02-03 04:05:06' WHERE employee_id = 2",
    look="SELECT employee_id, hire_date FROM employee",
    rows=lambda m: m.Employee.objects.values_list("id", "hire_date"),
)
def saved(m: Any) -> None:
    """A time without a zone saved on an instance"""
    employee = m.Employee.objects.get(id=2)
    employee.hire_date = dt.datetime(2001, 2, 3, 4, 5, 6)
    employee.save()


@changes(
    "UPDATE invoice_line SET quantity = ROUND(CAST(unit_price * 3 AS NUMERIC)) WHERE"
    " invoice_line_id < 50",
    look="SELECT invoice_line_id, quantity FROM invoice_line",
    rows=lambda m: m.InvoiceLine.objects.values_list("id", "quantity"),
)
def rounded(m: Any) -> None:
    """A whole number from a rounded decimal"""
    m.InvoiceLine.objects.filter(id__lt=50).update(quantity=Round(F("unit_price") * 3))


@changes(
    "INSERT INTO artist (artist_id, name) VALUES (5000, 'Nobody Yet')",
    "UPDATE album SET artist_id = 5000 WHERE album_id = 1",
    look="SELECT album_id, artist_id FROM album",
    rows=lambda m: m.Album.objects.values_list("id", "artist"),
)
def reverse_key(m: Any) -> None:
    """An album given to a new artist through the reverse relation"""
    artist = m.Artist.objects.create(id=5000, name="Nobody Yet")
    artist.albums.add(m.Album.objects.get(id=1))


@changes(
    "DELETE FROM invoice_line WHERE invoice_id IN (SELECT invoice_id FROM invoice WHERE total < 1"
    " OR total > 25)",
    "DELETE FROM invoice WHERE total < 1 OR total > 25",
    look="SELECT (SELECT COUNT(*) FROM invoice), (SELECT COUNT(*) FROM invoice_line)",
    rows=lambda m: [(m.Invoice.objects.count(), m.InvoiceLine.objects.count())],
)
def cleaned(m: Any) -> None:
    """Small invoices with their lines, and very large ones, deleted"""
    m.InvoiceLine.objects.filter(invoice__total__gt=25).delete()
    m.InvoiceLine.objects.filter(invoice__total__lt=1).delete()
    m.Invoice.objects.filter(Q(total__lt=1) | Q(total__gt=25)).delete()


@changes(
    "UPDATE track SET bytes = bytes / 1024 WHERE bytes IS NOT NULL AND track_id < 300",
    look="SELECT track_id, bytes FROM track",
    rows=lambda m: m.Track.objects.values_list("id", "bytes"),
)
def integer_quotient(m: Any) -> None:
    """Whole kilobytes: the quotient of whole numbers, cut down"""
    from treefold_orm import Floor

    m.Track.objects.filter(id__lt=300, bytes__isnull=False).update(bytes=Floor(F("bytes") / 1024))
