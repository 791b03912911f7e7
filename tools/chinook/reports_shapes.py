"""Trees, CTEs, pivots, existence, sets, text."""

from __future__ import annotations

from typing import Any

from chinook.report import Reports
from treefold_orm import (
    CTE,
    Case,
    Coalesce,
    Concat,
    Count,
    Exists,
    F,
    Left,
    Length,
    Lower,
    Max,
    OuterRef,
    Q,
    Replace,
    StringAgg,
    Subquery,
    Substr,
    Sum,
    Upper,
    Value,
    When,
    all_of,
    any_of,
    none_of,
)

reports = Reports()
_BELOW = (
    "WITH RECURSIVE below(id, depth) AS (SELECT employee_id, 0 FROM employee WHERE reports_to IS"
    " NULL UNION ALL SELECT e.employee_id, b.depth + 1 FROM employee e JOIN below b ON"
    " e.reports_to = b.id) "
)


@reports(_BELOW + "SELECT id, depth FROM below")
def tree(m: Any) -> Any:
    """Employees with their depth below the head"""
    below = CTE.recursive(m.Employee.objects.filter(reports_to=None), "staff", depth="depth")
    return below.objects.values_list("id", "depth")


@reports(_BELOW + "SELECT depth, COUNT(*) FROM below GROUP BY depth")
def levels(m: Any) -> Any:
    """How many employees there are at each depth"""
    below = CTE.recursive(m.Employee.objects.filter(reports_to=None), "staff", depth="depth")
    return below.objects.values("depth").annotate(n=Count("id")).values_list("depth", "n")


@reports(
    "WITH RECURSIVE up(id, boss) AS (SELECT employee_id, reports_to FROM employee WHERE"
    " employee_id = 8 UNION ALL SELECT e.employee_id, e.reports_to FROM employee e JOIN up ON"
    " up.boss = e.employee_id) SELECT id FROM up"
)
def chain(m: Any) -> Any:
    """An employee and everybody above"""
    above = CTE.recursive(m.Employee.objects.filter(id=8), "reports_to")
    return above.objects.values_list("id")


@reports(
    _BELOW + "SELECT COALESCE(SUM(i.total), 0) FROM below b JOIN customer c ON c.support_rep_id ="
    " b.id JOIN invoice i ON i.customer_id = c.customer_id WHERE b.depth = 2"
)
def sales_at_depth(m: Any) -> Any:
    """Sales of the agents two levels below the head"""
    below = CTE.recursive(m.Employee.objects.filter(reports_to=None), "staff", depth="depth")
    agents = below.objects.filter(depth=2).values("id")
    found = m.Invoice.objects.filter(customer__support_rep__in=agents).aggregate(t=Sum("total"))
    return [(found["t"],)]


@reports(
    "SELECT e.last_name, b.last_name FROM employee e LEFT JOIN employee b ON b.employee_id ="
    " e.reports_to"
)
def bosses(m: Any) -> Any:
    """Each employee with the boss, None at the top"""
    return m.Employee.objects.values_list("last_name", "reports_to__last_name")


@reports(
    "SELECT c.customer_id, s.t, s.n FROM customer c JOIN (SELECT customer_id, SUM(total) AS t,"
    " COUNT(*) AS n FROM invoice GROUP BY customer_id) AS s ON s.customer_id = c.customer_id"
    " WHERE s.t > 40"
)
def joined_totals(m: Any) -> Any:
    """Customers joined to their totals, by a CTE"""
    spent = CTE(m.Invoice.objects.values("customer").annotate(t=Sum("total"), n=Count("id")))
    rows = m.Customer.objects.join(spent, customer="pk").filter(t__gt=40)
    return rows.values_list("id", "t", "n")


@reports(
    "SELECT billing_country,"
    " SUM(CASE WHEN @year(invoice_date) = 2021 THEN total ELSE 0 END),"
    " SUM(CASE WHEN @year(invoice_date) = 2022 THEN total ELSE 0 END),"
    " SUM(CASE WHEN @year(invoice_date) = 2023 THEN total ELSE 0 END)"
    " FROM invoice GROUP BY billing_country"
)
def pivot(m: Any) -> Any:
    """Sales by country and year, years as columns"""
    columns = {
        f"y{year}": Sum(Case(When(invoice_date__year=year, then=F("total")), default=Value(0)))
        for year in (2021, 2022, 2023)
    }
    groups = m.Invoice.objects.values("billing_country").annotate(**columns)
    return groups.values_list("billing_country", *columns)


@reports(
    "SELECT a.artist_id,"
    " COUNT(CASE WHEN g.name = 'Rock' THEN 1 END), COUNT(CASE WHEN g.name = 'Metal' THEN 1 END)"
    " FROM artist a LEFT JOIN album al ON al.artist_id = a.artist_id LEFT JOIN track t ON"
    " t.album_id = al.album_id LEFT JOIN genre g ON g.genre_id = t.genre_id GROUP BY a.artist_id"
)
def pivot_of_relations(m: Any) -> Any:
    """Rock and metal tracks of each artist"""
    rows = m.Artist.objects.annotate(
        r=Count("albums__tracks", filter=Q(albums__tracks__genre__name="Rock")),
        m=Count("albums__tracks", filter=Q(albums__tracks__genre__name="Metal")),
    )
    return rows.values_list("id", "r", "m")


@reports(
    "SELECT CASE WHEN milliseconds < 120000 THEN 'short' WHEN milliseconds < 300000 THEN 'usual'"
    " ELSE 'long' END, COUNT(*) FROM track GROUP BY 1"
)
def buckets(m: Any) -> Any:
    """Tracks by length in words"""
    kind = Case(
        When(milliseconds__lt=120_000, then=Value("short")),
        When(milliseconds__lt=300_000, then=Value("usual")),
        default=Value("long"),
    )
    groups = m.Track.objects.annotate(k=kind).values("k")
    return groups.annotate(n=Count("id")).values_list("k", "n")


@reports(
    "SELECT a.artist_id FROM artist a WHERE NOT EXISTS (SELECT 1 FROM album al WHERE al.artist_id"
    " = a.artist_id)"
)
def without_albums(m: Any) -> Any:
    """Artists without an album"""
    return m.Artist.objects.filter(albums=None).values_list("id")


@reports(
    "SELECT t.track_id FROM track t WHERE NOT EXISTS (SELECT 1 FROM invoice_line l WHERE l.track_id"
    " = t.track_id) AND t.genre_id = 1"
)
def never_sold(m: Any) -> Any:
    """Rock tracks that were never sold, by Exists and OuterRef"""
    sold = Exists(m.InvoiceLine.objects.filter(track=OuterRef("pk")))
    return m.Track.objects.filter(~sold, genre=1).values_list("id")


@reports(
    "SELECT c.customer_id FROM customer c WHERE EXISTS (SELECT 1 FROM invoice i JOIN invoice_line l"
    " ON l.invoice_id = i.invoice_id JOIN track t ON t.track_id = l.track_id JOIN genre g ON"
    " g.genre_id = t.genre_id WHERE i.customer_id = c.customer_id AND g.name = 'Jazz')"
    " AND NOT EXISTS (SELECT 1 FROM invoice i JOIN invoice_line l ON l.invoice_id = i.invoice_id"
    " JOIN track t ON t.track_id = l.track_id JOIN genre g ON g.genre_id = t.genre_id WHERE"
    " i.customer_id = c.customer_id AND g.name = 'Metal')"
)
def jazz_without_metal(m: Any) -> Any:
    """Customers who bought jazz and no metal"""
    rows = m.Customer.objects.filter(invoices__lines__track__genre__name="Jazz")
    return rows.exclude(invoices__lines__track__genre__name="Metal").values_list("id")


@reports(
    "SELECT al.album_id FROM album al WHERE EXISTS (SELECT 1 FROM track t WHERE t.album_id ="
    " al.album_id) AND NOT EXISTS (SELECT 1 FROM track t WHERE t.album_id = al.album_id AND NOT"
    " t.milliseconds > 240000)"
)
def only_long_tracks(m: Any) -> Any:
    """Albums of which every track is long"""
    long = all_of("tracks", Q(milliseconds__gt=240_000))
    return m.Album.objects.filter(any_of("tracks"), long).values_list("id")


@reports(
    "SELECT p.playlist_id FROM playlist p WHERE NOT EXISTS (SELECT 1 FROM playlist_track pt JOIN"
    " track t ON t.track_id = pt.track_id WHERE pt.playlist_id = p.playlist_id AND t.unit_price >"
    " 1)"
)
def cheap_playlists(m: Any) -> Any:
    """Playlists without a dear track"""
    return m.Playlist.objects.filter(none_of("tracks", Q(unit_price__gt=1))).values_list("id")


@reports(
    "SELECT playlist_id, track_id FROM playlist_track WHERE playlist_id = 3"
    " ORDER BY playlist_id, track_id LIMIT 20",
    ordered=True,
)
def composite(m: Any) -> Any:
    """Rows of the table with a key of two columns"""
    rows = m.PlaylistTrack.objects.filter(playlist=3).order_by("pk")[:20]
    return [row.pk for row in rows]


@reports("SELECT COUNT(*) FROM playlist_track WHERE track_id IN (1, 2, 3)")
def entries(m: Any) -> Any:
    """How often three tracks are listed"""
    return [(m.PlaylistTrack.objects.filter(track__in=[1, 2, 3]).count(),)]


@reports("SELECT name FROM playlist UNION SELECT name FROM genre UNION SELECT name FROM media_type")
def names(m: Any) -> Any:
    """Names of three tables, each once"""
    rows = m.Playlist.objects.values_list("name")
    return rows.union(m.Genre.objects.values_list("name"), m.MediaType.objects.values_list("name"))


@reports("SELECT country FROM customer EXCEPT SELECT billing_country FROM invoice WHERE total > 20")
def difference(m: Any) -> Any:
    """Countries without a sale above 20"""
    rows = m.Customer.objects.values_list("country")
    return rows.difference(m.Invoice.objects.filter(total__gt=20).values_list("billing_country"))


@reports("SELECT customer_id, COALESCE(company, first_name || ' ' || last_name) FROM customer")
def addressees(m: Any) -> Any:
    """Company, or else the full name"""
    full = Concat("first_name", Value(" "), "last_name")
    return m.Customer.objects.annotate(a=Coalesce("company", full)).values_list("id", "a")


@reports(
    "SELECT track_id, UPPER(SUBSTR(name, 1, 3)), LENGTH(name), LOWER(REPLACE(name, ' ', '-'))"
    " FROM track WHERE track_id < 200"
)
def texts(m: Any) -> Any:
    """Parts of names"""
    rows = m.Track.objects.filter(id__lt=200).annotate(
        a=Upper(Substr("name", 1, 3)), b=Length("name"), c=Lower(Replace("name", " ", "-"))
    )
    return rows.values_list("id", "a", "b", "c")


@reports("SELECT SUBSTR(name, 1, 1), COUNT(*) FROM artist GROUP BY SUBSTR(name, 1, 1)")
def initials(m: Any) -> Any:
    """Artists by initial"""
    groups = m.Artist.objects.annotate(i=Left("name", 1)).values("i")
    return groups.annotate(n=Count("id")).values_list("i", "n")


@reports(
    "SELECT SUBSTR(email, @position(email, '@') + 1), COUNT(*) FROM customer GROUP BY 1"
    " HAVING COUNT(*) > 1"
)
def domains(m: Any) -> Any:
    """Domains of more than one customer"""
    from treefold_orm import Position

    host = Substr("email", Position("email", Value("@")) + 1)
    groups = m.Customer.objects.annotate(h=host).values("h").annotate(n=Count("id"))
    return groups.filter(n__gt=1).values_list("h", "n")


@reports("SELECT track_id FROM track WHERE LOWER(name) LIKE '%love%' AND composer IS NOT NULL")
def love(m: Any) -> Any:
    """Tracks about love whose composer is known"""
    rows = m.Track.objects.filter(name__icontains="love", composer__isnull=False)
    return rows.values_list("id")


@reports(
    "SELECT track_id FROM track WHERE (genre_id = 1 AND milliseconds > 400000) OR (genre_id = 2 AND"
    " NOT (milliseconds > 200000)) OR composer = 'AC/DC'"
)
def nested(m: Any) -> Any:
    """Conditions joined in every way"""
    rows = m.Track.objects.filter(
        Q(genre=1, milliseconds__gt=400_000)
        | (Q(genre=2) & ~Q(milliseconds__gt=200_000))
        | Q(composer="AC/DC")
    )
    return rows.values_list("id")


@reports("SELECT COUNT(*) FROM track WHERE composer IS NULL OR composer <> 'U2'")
def not_u2(m: Any) -> Any:
    """exclude() keeps rows whose value is unknown"""
    return [(m.Track.objects.exclude(composer="U2").count(),)]


@reports(
    "SELECT g.genre_id, (SELECT t.name FROM track t WHERE t.genre_id = g.genre_id AND"
    " t.milliseconds = (SELECT MAX(x.milliseconds) FROM track x WHERE x.genre_id = g.genre_id)"
    " ORDER BY t.track_id LIMIT 1) FROM genre g"
)
def longest_of_genre(m: Any) -> Any:
    """Longest track of each genre, by a query inside a query"""
    tracks = m.Track.objects.filter(genre=OuterRef("pk")).order_by("-milliseconds", "id")
    return m.Genre.objects.annotate(t=Subquery(tracks.values("name")[:1])).values_list("id", "t")


@reports(
    "SELECT t1.album_id, COUNT(*) FROM track t1 JOIN track t2 ON t2.album_id = t1.album_id AND"
    " t2.track_id > t1.track_id AND t2.composer = t1.composer GROUP BY t1.album_id"
)
def pairs(m: Any) -> Any:
    """Pairs of tracks of one composer in each album, by self-join"""
    same = m.Track.objects.filter(
        album=OuterRef("album"), id__gt=OuterRef("id"), composer=OuterRef("composer")
    )
    counted = same.values("album").annotate(n=Count("id")).values("n")
    rows = m.Track.objects.annotate(n=Coalesce(Subquery(counted), Value(0))).filter(n__gt=0)
    return rows.values("album").annotate(s=Sum("n")).values_list("album", "s")


@reports(
    "SELECT artist_id, title FROM (SELECT artist_id, title FROM album) AS x WHERE artist_id = 90"
)
def listed(m: Any) -> Any:
    """Albums of one artist, gathered in one text"""
    rows = m.Album.objects.filter(artist=90).values("artist")
    found = rows.annotate(t=StringAgg("title", delimiter="|", order_by=["title"]))
    return [
        (artist, title) for artist, t in found.values_list("artist", "t") for title in t.split("|")
    ]


@reports(
    "SELECT al.album_id, al.title, ar.name, x.m FROM album al JOIN artist ar ON ar.artist_id ="
    " al.artist_id JOIN (SELECT album_id, MAX(milliseconds) AS m FROM track GROUP BY album_id)"
    " AS x ON x.album_id = al.album_id WHERE ar.name LIKE 'A%'"
)
def annotated_instances(m: Any) -> Any:
    """Instances with their parent and an annotation"""
    rows = m.Album.objects.filter(artist__name__startswith="A").select_related("artist")
    return [
        (a.id, a.title, a.artist.name, a.m) for a in rows.annotate(m=Max("tracks__milliseconds"))
    ]


@reports(
    "SELECT p.playlist_id, t.track_id FROM playlist p JOIN playlist_track pt ON pt.playlist_id ="
    " p.playlist_id JOIN track t ON t.track_id = pt.track_id WHERE p.playlist_id IN (9, 10, 18)"
)
def prefetched(m: Any) -> Any:
    """Playlists with their tracks, prefetched"""
    rows = m.Playlist.objects.filter(id__in=[9, 10, 18]).prefetch_related("tracks")
    return [(p.id, t.id) for p in rows for t in p.tracks.all()]


@reports(
    "SELECT l.invoice_line_id FROM invoice_line l JOIN track t ON t.track_id = l.track_id"
    " WHERE l.unit_price = t.unit_price AND l.quantity > t.unit_price"
)
def across_types(m: Any) -> Any:
    """Decimals of two tables, and a whole number against a decimal"""
    rows = m.InvoiceLine.objects.filter(
        unit_price=F("track__unit_price"), quantity__gt=F("track__unit_price")
    )
    return rows.values_list("id")


@reports("SELECT MAX(name), MIN(name) FROM genre WHERE name > 'M'")
def text_extremes(m: Any) -> Any:
    """Largest and smallest text"""
    from treefold_orm import Min

    found = m.Genre.objects.filter(name__gt="M").aggregate(a=Max("name"), b=Min("name"))
    return [(found["a"], found["b"])]


@reports("SELECT COUNT(*) FROM customer WHERE company IS NULL AND fax IS NULL")
def nulls(m: Any) -> Any:
    """Customers with neither company nor fax"""
    return [(m.Customer.objects.filter(company=None, fax__isnull=True).count(),)]


@reports(
    "SELECT city FROM customer GROUP BY city HAVING COUNT(*) > 1 ORDER BY COUNT(*) DESC, city",
    ordered=True,
)
def shared_cities(m: Any) -> Any:
    """Cities of several customers, most first"""
    groups = m.Customer.objects.values("city").annotate(n=Count("id")).filter(n__gt=1)
    return groups.order_by("-n", "city").values_list("city")
