"""Top N per group, ranks, running and moving totals, shares, gaps between rows."""

from __future__ import annotations

from typing import Any

from chinook.report import Reports
from treefold_orm import (
    Avg,
    Count,
    CumeDist,
    DenseRank,
    F,
    FirstValue,
    Lag,
    LastValue,
    Lead,
    Max,
    Ntile,
    OuterRef,
    PercentRank,
    Rank,
    RowNumber,
    RowRange,
    Subquery,
    Sum,
    Window,
)

reports = Reports()
INVOICE = "invoice_date, invoice_id"


@reports(
    "SELECT name, milliseconds, album_id FROM (SELECT name, milliseconds, album_id, ROW_NUMBER()"
    " OVER (PARTITION BY album_id ORDER BY milliseconds DESC, track_id) AS r FROM track) AS ranked"
    " WHERE r <= 2"
)
def two_longest(m: Any) -> Any:
    """Two longest tracks of each album"""
    number = Window(RowNumber(), partition_by=["album"], order_by=["-milliseconds", "id"])
    rows = m.Track.objects.annotate(r=number).filter(r__lte=2)
    return rows.values_list("name", "milliseconds", "album")


@reports(
    "SELECT genre_id, track_id, n FROM (SELECT t.genre_id, t.track_id, COUNT(*) AS n, RANK() OVER"
    " (PARTITION BY t.genre_id ORDER BY COUNT(*) DESC) AS r FROM invoice_line l JOIN track t ON"
    " t.track_id = l.track_id GROUP BY t.genre_id, t.track_id) AS ranked WHERE r = 1"
)
def best_sellers(m: Any) -> Any:
    """Best selling tracks of each genre, ties included"""
    groups = m.InvoiceLine.objects.values("track__genre", "track").annotate(n=Count("id"))
    rank = Window(Rank(), partition_by=["track__genre"], order_by=["-n"])
    return groups.annotate(r=rank).filter(r=1).values_list("track__genre", "track", "n")


@reports(
    f"SELECT invoice_id, SUM(total) OVER (ORDER BY {INVOICE} ROWS BETWEEN UNBOUNDED PRECEDING AND"
    " CURRENT ROW) FROM invoice"
)
def running_total(m: Any) -> Any:
    """Running total of sales"""
    total = Window(Sum("total"), order_by=["invoice_date", "id"], frame="rows_to_current")
    return m.Invoice.objects.annotate(t=total).values_list("id", "t")


@reports(
    "SELECT invoice_id, SUM(total) OVER (PARTITION BY customer_id ORDER BY invoice_date,"
    " invoice_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM invoice"
)
def running_by_customer(m: Any) -> Any:
    """Running total of each customer"""
    total = Window(
        Sum("total"),
        partition_by=["customer"],
        order_by=["invoice_date", "id"],
        frame="rows_to_current",
    )
    return m.Invoice.objects.annotate(t=total).values_list("id", "t")


@reports(
    f"SELECT invoice_id, AVG(total) OVER (ORDER BY {INVOICE} ROWS BETWEEN 6 PRECEDING AND"
    " CURRENT ROW) FROM invoice"
)
def moving_average(m: Any) -> Any:
    """Moving average of seven invoices"""
    mean = Window(Avg("total"), order_by=["invoice_date", "id"], frame=RowRange(-6, 0))
    return m.Invoice.objects.annotate(t=mean).values_list("id", "t")


@reports(
    f"SELECT invoice_id, MAX(total) OVER (ORDER BY {INVOICE} ROWS BETWEEN 3 PRECEDING AND"
    " 3 FOLLOWING) FROM invoice"
)
def centred_maximum(m: Any) -> Any:
    """Largest of seven neighbouring invoices"""
    top = Window(Max("total"), order_by=["invoice_date", "id"], frame=RowRange(-3, 3))
    return m.Invoice.objects.annotate(t=top).values_list("id", "t")


@reports(f"SELECT invoice_id, total - LAG(total) OVER (ORDER BY {INVOICE}) FROM invoice")
def change(m: Any) -> Any:
    """Change from the invoice before"""
    before = Window(Lag("total"), order_by=["invoice_date", "id"])
    return m.Invoice.objects.annotate(d=F("total") - before).values_list("id", "d")


@reports(f"SELECT invoice_id, LEAD(invoice_id, 2, 0) OVER (ORDER BY {INVOICE}) FROM invoice")
def next_but_one(m: Any) -> Any:
    """The invoice after the next, 0 at the end"""
    later = Window(Lead("id", 2, default=0), order_by=["invoice_date", "id"])
    return m.Invoice.objects.annotate(n=later).values_list("id", "n")


@reports(
    "SELECT customer_id, t, NTILE(4) OVER (ORDER BY t DESC, customer_id) FROM (SELECT customer_id,"
    " ROUND(CAST(SUM(total) AS NUMERIC), 2) AS t FROM invoice GROUP BY customer_id) AS spent"
)
def quartiles(m: Any) -> Any:
    """Customers by quartile of what they spent"""
    groups = m.Invoice.objects.values("customer").annotate(t=Sum("total"))
    part = Window(Ntile(4), order_by=["-t", "customer"])
    return groups.annotate(q=part).values_list("customer", "t", "q")


@reports(
    "SELECT track_id, DENSE_RANK() OVER (ORDER BY unit_price DESC), PERCENT_RANK() OVER (ORDER BY"
    " milliseconds), CUME_DIST() OVER (ORDER BY milliseconds) FROM track"
)
def distribution(m: Any) -> Any:
    """Rank by price, and place by length"""
    rows = m.Track.objects.annotate(
        a=Window(DenseRank(), order_by=["-unit_price"]),
        b=Window(PercentRank(), order_by=["milliseconds"]),
        c=Window(CumeDist(), order_by=["milliseconds"]),
    )
    return rows.values_list("id", "a", "b", "c")


@reports(
    "SELECT billing_country, SUM(total), SUM(total) * 100 / SUM(SUM(total)) OVER ()"
    " FROM invoice GROUP BY billing_country"
)
def shares(m: Any) -> Any:
    """Share of each country in all sales, in percent"""
    total = sum(m.Invoice.objects.values_list("total", flat=True))
    groups = m.Invoice.objects.values("billing_country").annotate(t=Sum("total"))
    rows = groups.annotate(s=F("t") * 100 / total)
    return rows.values_list("billing_country", "t", "s")


@reports(
    "SELECT invoice_id, FIRST_VALUE(total) OVER (PARTITION BY customer_id ORDER BY invoice_date,"
    " invoice_id), LAST_VALUE(total) OVER (PARTITION BY customer_id ORDER BY invoice_date,"
    " invoice_id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM invoice"
)
def first_and_last(m: Any) -> Any:
    """First and last purchase beside each purchase of a customer"""
    window: dict[str, Any] = {"partition_by": ["customer"], "order_by": ["invoice_date", "id"]}
    rows = m.Invoice.objects.annotate(
        a=Window(FirstValue("total"), **window), b=Window(LastValue("total"), **window, frame="all")
    )
    return rows.values_list("id", "a", "b")


@reports(
    "SELECT i.invoice_id FROM invoice i WHERE i.total > (SELECT AVG(o.total) FROM invoice o WHERE"
    " o.customer_id = i.customer_id)"
)
def above_own_average(m: Any) -> Any:
    """Invoices above the customer's own average"""
    own = m.Invoice.objects.filter(customer=OuterRef("customer")).values("customer")
    mean = Subquery(own.annotate(a=Avg("total")).values("a"))
    return m.Invoice.objects.annotate(mean=mean).filter(total__gt=F("mean")).values_list("id")


@reports("SELECT invoice_id, total - AVG(total) OVER (PARTITION BY billing_country) FROM invoice")
def against_country(m: Any) -> Any:
    """Each invoice against the average of its country"""
    mean = Window(Avg("total"), partition_by=["billing_country"])
    return [
        (number, float(total) - float(mean))
        for number, total, mean in m.Invoice.objects.annotate(a=mean).values_list(
            "id", "total", "a"
        )
    ]


@reports(
    "SELECT c.customer_id, (SELECT i.invoice_id FROM invoice i WHERE i.customer_id = c.customer_id"
    " ORDER BY i.invoice_date DESC, i.invoice_id DESC LIMIT 1) FROM customer c"
)
def latest_invoice(m: Any) -> Any:
    """Last invoice of each customer, by a subquery with order and limit"""
    latest = m.Invoice.objects.filter(customer=OuterRef("pk")).order_by("-invoice_date", "-id")
    return m.Customer.objects.annotate(i=Subquery(latest.values("id")[:1])).values_list("id", "i")


@reports(
    "SELECT customer_id, invoice_id FROM (SELECT customer_id, invoice_id, ROW_NUMBER() OVER"
    " (PARTITION BY customer_id ORDER BY total DESC, invoice_id) AS r FROM invoice) AS x"
    " WHERE r = 1 ORDER BY customer_id",
    ordered=True,
)
def largest_of_each(m: Any) -> Any:
    """Largest invoice of each customer, by distinct(fields)"""
    rows = m.Invoice.objects.order_by("customer", "-total", "id").distinct("customer")
    return rows.values_list("customer", "id")


@reports(
    "SELECT billing_country, invoice_id, total FROM (SELECT billing_country, invoice_id, total,"
    " ROW_NUMBER() OVER (PARTITION BY billing_country ORDER BY total DESC, invoice_id) AS r"
    " FROM invoice) AS x WHERE r <= 3 ORDER BY billing_country, total DESC, invoice_id",
    ordered=True,
)
def three_of_each_country(m: Any) -> Any:
    """Three largest invoices of each country, in order"""
    place = Window(RowNumber(), partition_by=["billing_country"], order_by=["-total", "id"])
    rows = m.Invoice.objects.annotate(r=place).filter(r__lte=3)
    return rows.order_by("billing_country", "-total", "id").values_list(
        "billing_country", "id", "total"
    )


@reports(
    "SELECT @month_start(invoice_date), SUM(total), SUM(SUM(total)) OVER (ORDER BY"
    " @month_start(invoice_date)) FROM invoice GROUP BY @month_start(invoice_date)"
)
def running_by_month(m: Any) -> Any:
    """Sales by month with their running total"""
    from treefold_orm import Trunc

    months = m.Invoice.objects.annotate(at=Trunc("invoice_date", "month")).values("at")
    groups = months.annotate(t=Sum("total"))
    return groups.annotate(run=Window(Sum("t"), order_by=["at"])).values_list("at", "t", "run")
