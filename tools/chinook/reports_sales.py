"""Totals, counts and averages: groups, HAVING, several aggregates, relations of any length."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from chinook.report import Reports
from treefold_orm import Avg, Case, Coalesce, Count, F, Max, Min, Q, Round, Sum, Value, When

reports = Reports()


@reports("SELECT COUNT(*), SUM(total), MIN(total), MAX(total) FROM invoice")
def overall(m: Any) -> Any:
    """Sales overall"""
    found = m.Invoice.objects.aggregate(
        n=Count("*"), total=Sum("total"), low=Min("total"), high=Max("total")
    )
    return [tuple(found.values())]


@reports("SELECT AVG(total) FROM invoice")
def average(m: Any) -> Any:
    """Average invoice"""
    return [(m.Invoice.objects.aggregate(mean=Avg("total"))["mean"],)]


@reports("SELECT billing_country, COUNT(*), SUM(total) FROM invoice GROUP BY billing_country")
def by_country(m: Any) -> Any:
    """Sales by country"""
    groups = m.Invoice.objects.values("billing_country")
    return groups.annotate(n=Count("id"), t=Sum("total")).values_list("billing_country", "n", "t")


@reports(
    "SELECT billing_country, SUM(total) FROM invoice GROUP BY billing_country"
    " HAVING SUM(total) > 100 ORDER BY 2 DESC, 1",
    ordered=True,
)
def big_countries(m: Any) -> Any:
    """Countries that bought for more than 100"""
    groups = m.Invoice.objects.values("billing_country").annotate(t=Sum("total"))
    return (
        groups.filter(t__gt=100)
        .order_by("-t", "billing_country")
        .values_list("billing_country", "t")
    )


@reports(
    "SELECT g.name, SUM(l.unit_price * l.quantity) FROM invoice_line l"
    " JOIN track t ON t.track_id = l.track_id JOIN genre g ON g.genre_id = t.genre_id"
    " GROUP BY g.name"
)
def revenue_by_genre(m: Any) -> Any:
    """Revenue by genre"""
    groups = m.InvoiceLine.objects.values("track__genre__name")
    return groups.annotate(t=Sum(F("unit_price") * F("quantity"))).values_list(
        "track__genre__name", "t"
    )


@reports(
    "SELECT a.name, COUNT(DISTINCT al.album_id), COUNT(t.track_id) FROM artist a"
    " LEFT JOIN album al ON al.artist_id = a.artist_id"
    " LEFT JOIN track t ON t.album_id = al.album_id GROUP BY a.artist_id, a.name"
)
def artist_size(m: Any) -> Any:
    """Albums and tracks of every artist"""
    rows = m.Artist.objects.annotate(a=Count("albums"), t=Count("albums__tracks"))
    return rows.values_list("name", "a", "t")


@reports(
    "SELECT c.customer_id, COUNT(i.invoice_id), COALESCE(SUM(i.total), 0) FROM customer c"
    " LEFT JOIN invoice i ON i.customer_id = c.customer_id GROUP BY c.customer_id"
)
def customer_totals(m: Any) -> Any:
    """Invoices and totals of each customer"""
    rows = m.Customer.objects.annotate(
        n=Count("invoices"), t=Coalesce(Sum("invoices__total"), Value(Decimal(0)))
    )
    return rows.values_list("id", "n", "t")


@reports(
    "SELECT e.employee_id, (SELECT COUNT(*) FROM customer c WHERE c.support_rep_id ="
    " e.employee_id), (SELECT COUNT(*) FROM employee r WHERE r.reports_to = e.employee_id)"
    " FROM employee e"
)
def two_counts(m: Any) -> Any:
    """Customers and reports of each employee: two relations that must not multiply"""
    rows = m.Employee.objects.annotate(c=Count("customers"), r=Count("staff"))
    return rows.values_list("id", "c", "r")


@reports(
    "SELECT e.employee_id, COALESCE(SUM(i.total), 0), COUNT(DISTINCT c.customer_id) FROM employee e"
    " LEFT JOIN customer c ON c.support_rep_id = e.employee_id"
    " LEFT JOIN invoice i ON i.customer_id = c.customer_id GROUP BY e.employee_id"
)
def rep_sales(m: Any) -> Any:
    """Sales of each support agent"""
    rows = m.Employee.objects.annotate(
        t=Coalesce(Sum("customers__invoices__total"), Value(Decimal(0))), c=Count("customers")
    )
    return rows.values_list("id", "t", "c")


@reports(
    "SELECT p.name, p.playlist_id, COUNT(pt.track_id) FROM playlist p LEFT JOIN playlist_track pt"
    " ON pt.playlist_id = p.playlist_id GROUP BY p.playlist_id, p.name"
)
def playlist_size(m: Any) -> Any:
    """Tracks of each playlist, through a many-to-many"""
    return m.Playlist.objects.annotate(n=Count("tracks")).values_list("name", "id", "n")


@reports(
    "SELECT p.playlist_id, SUM(t.milliseconds), AVG(@number(t.milliseconds)), MAX(t.unit_price)"
    " FROM playlist p LEFT JOIN playlist_track pt ON pt.playlist_id = p.playlist_id"
    " LEFT JOIN track t ON t.track_id = pt.track_id GROUP BY p.playlist_id"
)
def playlist_length(m: Any) -> Any:
    """Length, mean length and dearest track of each playlist"""
    rows = m.Playlist.objects.annotate(
        s=Sum("tracks__milliseconds"), a=Avg("tracks__milliseconds"), x=Max("tracks__unit_price")
    )
    return rows.values_list("id", "s", "a", "x")


@reports(
    "SELECT mt.name, COUNT(*), SUM(t.bytes) FROM track t JOIN media_type mt"
    " ON mt.media_type_id = t.media_type_id GROUP BY mt.name"
)
def by_media_type(m: Any) -> Any:
    """Tracks and bytes by media type"""
    groups = m.Track.objects.values("media_type__name").annotate(n=Count("id"), b=Sum("bytes"))
    return groups.values_list("media_type__name", "n", "b")


@reports(
    "SELECT AVG(@number(n)), MAX(n) FROM (SELECT COUNT(t.track_id) AS n FROM album a"
    " LEFT JOIN track t ON t.album_id = a.album_id GROUP BY a.album_id) AS sized"
)
def mean_album_size(m: Any) -> Any:
    """Mean and largest number of tracks of an album: an aggregate of an annotation"""
    found = m.Album.objects.annotate(n=Count("tracks")).aggregate(a=Avg("n"), x=Max("n"))
    return [(found["a"], found["x"])]


@reports(
    "SELECT AVG(n), MIN(n), MAX(n) FROM (SELECT SUM(total) AS n FROM invoice"
    " GROUP BY customer_id) AS spent"
)
def mean_customer_value(m: Any) -> Any:
    """Mean, least and largest lifetime value"""
    rows = m.Customer.objects.annotate(n=Sum("invoices__total"))
    found = rows.aggregate(a=Avg("n"), low=Min("n"), high=Max("n"))
    return [(found["a"], found["low"], found["high"])]


@reports(
    "SELECT AVG(@number(n)) FROM (SELECT COUNT(*) AS n FROM playlist_track GROUP BY playlist_id)"
    " AS sized"
)
def mean_playlist(m: Any) -> Any:
    """Mean size of the playlists that have tracks"""
    rows = m.Playlist.objects.annotate(n=Count("tracks")).filter(n__gt=0)
    return [(rows.aggregate(a=Avg("n"))["a"],)]


@reports(
    "SELECT SUM(total) FROM (SELECT total FROM invoice ORDER BY total DESC, invoice_id LIMIT 10)"
    " AS top"
)
def top_ten_sum(m: Any) -> Any:
    """Sum of the ten largest invoices: an aggregate of a slice"""
    rows = m.Invoice.objects.order_by("-total", "id")[:10]
    return [(rows.aggregate(t=Sum("total"))["t"],)]


@reports(
    "SELECT COUNT(DISTINCT billing_country), COUNT(DISTINCT billing_city),"
    " COUNT(DISTINCT customer_id) FROM invoice"
)
def distinct_counts(m: Any) -> Any:
    """Countries, cities and customers that bought"""
    found = m.Invoice.objects.aggregate(
        a=Count("billing_country", distinct=True),
        b=Count("billing_city", distinct=True),
        c=Count("customer", distinct=True),
    )
    return [(found["a"], found["b"], found["c"])]


@reports(
    "SELECT billing_country, SUM(CASE WHEN total > 10 THEN total ELSE 0 END),"
    " SUM(CASE WHEN total <= 10 THEN 1 ELSE 0 END) FROM invoice GROUP BY billing_country"
)
def conditional_sums(m: Any) -> Any:
    """Large sales, and how many small ones, by country"""
    groups = m.Invoice.objects.values("billing_country").annotate(
        large=Sum(Case(When(total__gt=10, then=F("total")), default=Value(0))),
        small=Sum(Case(When(total__lte=10, then=Value(1)), default=Value(0))),
    )
    return groups.values_list("billing_country", "large", "small")


@reports(
    "SELECT customer_id, COUNT(*) FILTER (WHERE total > 5), SUM(total) FILTER (WHERE total > 5)"
    " FROM invoice GROUP BY customer_id"
)
def filtered_aggregates(m: Any) -> Any:
    """Invoices above 5 of each customer"""
    groups = m.Invoice.objects.values("customer").annotate(
        n=Count("id", filter=Q(total__gt=5)), t=Sum("total", filter=Q(total__gt=5))
    )
    return groups.values_list("customer", "n", "t")


@reports("SELECT unit_price, COUNT(*) FROM track GROUP BY unit_price")
def price_points(m: Any) -> Any:
    """Tracks by price"""
    return (
        m.Track.objects.values("unit_price").annotate(n=Count("id")).values_list("unit_price", "n")
    )


@reports(
    "SELECT i.invoice_id FROM invoice i JOIN invoice_line l ON l.invoice_id = i.invoice_id"
    " GROUP BY i.invoice_id, i.total HAVING ABS(SUM(l.unit_price * l.quantity) - i.total) < 0.001"
)
def sound_totals(m: Any) -> Any:
    """Invoices whose total is the sum of their lines: decimals compared exactly"""
    rows = m.Invoice.objects.annotate(s=Sum(F("lines__unit_price") * F("lines__quantity")))
    return rows.filter(s=F("total")).values_list("id")


@reports(
    "SELECT t.track_id, t.unit_price * 1.19, ROUND(CAST(t.unit_price * 1.19 AS NUMERIC), 2)"
    " FROM track t WHERE t.track_id <= 50"
)
def with_tax(m: Any) -> Any:
    """Prices with tax, exact and rounded to cents"""
    taxed = F("unit_price") * Decimal("1.19")
    rows = m.Track.objects.filter(id__lte=50).annotate(a=taxed, b=Round(taxed, 2))
    return rows.values_list("id", "a", "b")


@reports(
    "SELECT g.name, AVG(t.milliseconds / 1000.0), MIN(t.milliseconds), MAX(t.milliseconds)"
    " FROM genre g JOIN track t ON t.genre_id = g.genre_id GROUP BY g.genre_id, g.name"
    " HAVING COUNT(*) >= 20"
)
def genre_lengths(m: Any) -> Any:
    """Lengths in genres of at least 20 tracks"""
    rows = m.Genre.objects.annotate(
        n=Count("tracks"),
        a=Avg("tracks__milliseconds"),
        low=Min("tracks__milliseconds"),
        high=Max("tracks__milliseconds"),
    ).filter(n__gte=20)
    return [(r.name, r.a / 1000, r.low, r.high) for r in rows]


@reports(
    "SELECT COUNT(*) FROM (SELECT customer_id FROM invoice GROUP BY customer_id"
    " HAVING COUNT(*) = 7) AS loyal"
)
def loyal_customers(m: Any) -> Any:
    """Customers with exactly seven invoices"""
    return [(m.Customer.objects.annotate(n=Count("invoices")).filter(n=7).count(),)]


@reports(
    "SELECT DISTINCT c.country, g.name FROM customer c JOIN invoice i ON i.customer_id ="
    " c.customer_id JOIN invoice_line l ON l.invoice_id = i.invoice_id JOIN track t ON t.track_id"
    " = l.track_id JOIN genre g ON g.genre_id = t.genre_id WHERE c.country IN ('Chile', 'India')"
)
def genres_of_countries(m: Any) -> Any:
    """Genres bought in two countries, each once"""
    rows = m.InvoiceLine.objects.filter(invoice__customer__country__in=["Chile", "India"])
    return rows.values_list("invoice__customer__country", "track__genre__name").distinct()


@reports(
    "SELECT SUM(quantity * unit_price) / COUNT(DISTINCT invoice_id), MAX(unit_price * quantity)"
    " FROM invoice_line"
)
def revenue_per_invoice(m: Any) -> Any:
    """Revenue per invoice, computed from two aggregates"""
    found = m.InvoiceLine.objects.aggregate(
        s=Sum(F("quantity") * F("unit_price")),
        n=Count("invoice", distinct=True),
        x=Max(F("unit_price") * F("quantity")),
    )
    return [(found["s"] / found["n"], found["x"])]
