"""Months, quarters, weekdays, cohorts, gaps in time."""

from __future__ import annotations

import datetime as dt
from typing import Any

from chinook.report import Reports
from treefold_orm import (
    Avg,
    Count,
    Extract,
    F,
    Lag,
    Max,
    Min,
    OuterRef,
    Q,
    Subquery,
    Sum,
    Trunc,
    Window,
)

reports = Reports()


@reports(
    "SELECT @month_start(invoice_date), COUNT(*), SUM(total) FROM invoice"
    " GROUP BY @month_start(invoice_date)"
)
def by_month(m: Any) -> Any:
    """Sales by month"""
    rows = m.Invoice.objects.annotate(at=Trunc("invoice_date", "month")).values("at")
    return rows.annotate(n=Count("id"), t=Sum("total")).values_list("at", "n", "t")


@reports(
    "SELECT @year(invoice_date), @quarter(invoice_date), SUM(total) FROM invoice"
    " GROUP BY @year(invoice_date), @quarter(invoice_date)"
)
def by_quarter(m: Any) -> Any:
    """Sales by quarter"""
    parts = m.Invoice.objects.annotate(
        y=Extract("invoice_date", "year"), q=Extract("invoice_date", "quarter")
    ).values("y", "q")
    return parts.annotate(t=Sum("total")).values_list("y", "q", "t")


@reports("SELECT @week_day(invoice_date), COUNT(*) FROM invoice GROUP BY @week_day(invoice_date)")
def by_week_day(m: Any) -> Any:
    """Invoices by day of the week"""
    rows = m.Invoice.objects.annotate(d=Extract("invoice_date", "week_day")).values("d")
    return rows.annotate(n=Count("id")).values_list("d", "n")


@reports("SELECT @week_start(invoice_date), SUM(total) FROM invoice GROUP BY 1")
def by_week(m: Any) -> Any:
    """Sales by week"""
    rows = m.Invoice.objects.annotate(w=Trunc("invoice_date", "week")).values("w")
    return rows.annotate(t=Sum("total")).values_list("w", "t")


@reports(
    "SELECT COUNT(*) FROM invoice WHERE @year(invoice_date) = 2023 AND @month(invoice_date) = 5"
)
def one_month(m: Any) -> Any:
    """Invoices of one month, by lookups"""
    return [(m.Invoice.objects.filter(invoice_date__year=2023, invoice_date__month=5).count(),)]


@reports(
    "SELECT invoice_id FROM invoice WHERE invoice_date >= '2022-03-01' AND"
    " invoice_date < '2022-04-01'"
)
def between(m: Any) -> Any:
    """Invoices between two times without a zone"""
    rows = m.Invoice.objects.filter(
        invoice_date__gte=dt.datetime(2022, 3, 1), invoice_date__lt=dt.datetime(2022, 4, 1)
    )
    return rows.values_list("id")


@reports("SELECT invoice_id FROM invoice WHERE @day(invoice_date) = '2021-01-03'")
def one_day(m: Any) -> Any:
    """Invoices of one day"""
    return m.Invoice.objects.filter(invoice_date__date=dt.date(2021, 1, 3)).values_list("id")


@reports(
    "SELECT customer_id, MIN(invoice_date), MAX(invoice_date) FROM invoice GROUP BY customer_id"
)
def first_and_last_purchase(m: Any) -> Any:
    """First and last purchase of each customer"""
    groups = m.Invoice.objects.values("customer")
    return groups.annotate(a=Min("invoice_date"), b=Max("invoice_date")).values_list(
        "customer", "a", "b"
    )


@reports(
    "SELECT cohort, COUNT(*) FROM (SELECT customer_id, MIN(@year_start(invoice_date)) AS cohort"
    " FROM invoice GROUP BY customer_id) AS firsts GROUP BY cohort"
)
def cohorts(m: Any) -> Any:
    """Customers by year of their first purchase"""
    first = m.Invoice.objects.filter(customer=OuterRef("pk")).order_by("invoice_date", "id")
    rows = m.Customer.objects.annotate(first=Subquery(first.values("invoice_date")[:1]))
    years = rows.annotate(cohort=Trunc("first", "year")).values("cohort")
    return years.annotate(n=Count("id")).values_list("cohort", "n")


@reports(
    "SELECT f.cohort, @year(i.invoice_date), COUNT(DISTINCT i.customer_id), SUM(i.total) FROM"
    " invoice i JOIN (SELECT customer_id, MIN(@year(invoice_date)) AS cohort FROM invoice"
    " GROUP BY customer_id) AS f ON f.customer_id = i.customer_id"
    " GROUP BY f.cohort, @year(i.invoice_date)"
)
def retention(m: Any) -> Any:
    """Customers and sales of each cohort by year"""
    from treefold_orm import CTE

    firsts = m.Invoice.objects.values("customer").annotate(
        cohort=Min(Extract("invoice_date", "year"))
    )
    rows = m.Invoice.objects.join(CTE(firsts), customer="customer")
    groups = rows.annotate(y=Extract("invoice_date", "year")).values("cohort", "y")
    return groups.annotate(n=Count("customer", distinct=True), t=Sum("total")).values_list(
        "cohort", "y", "n", "t"
    )


@reports(
    "SELECT invoice_id, LAG(invoice_date) OVER (PARTITION BY customer_id ORDER BY invoice_date,"
    " invoice_id) FROM invoice"
)
def gaps(m: Any) -> Any:
    """The customer's purchase before, from the span that lies between"""
    before = Window(Lag("invoice_date"), partition_by=["customer"], order_by=["invoice_date", "id"])
    rows = m.Invoice.objects.annotate(d=F("invoice_date") - before)
    return [
        (number, None if gap is None else at - gap)
        for number, at, gap in rows.values_list("id", "invoice_date", "d")
    ]


@reports(
    "SELECT employee_id, @year(hire_date) - @year(birth_date) FROM employee WHERE hire_date >"
    " birth_date"
)
def age_at_hire(m: Any) -> Any:
    """Year of hire less year of birth"""
    rows = m.Employee.objects.filter(hire_date__gt=F("birth_date")).annotate(
        a=Extract("hire_date", "year") - Extract("birth_date", "year")
    )
    return rows.values_list("id", "a")


@reports("SELECT DISTINCT @year_start(invoice_date) FROM invoice ORDER BY 1", ordered=True)
def years(m: Any) -> Any:
    """Years with sales, in order"""
    return [(at,) for at in m.Invoice.objects.datetimes("invoice_date", "year")]


@reports(
    "SELECT a.y, a.t - b.t FROM (SELECT @year(invoice_date) AS y, SUM(total) AS t FROM invoice"
    " GROUP BY 1) AS a JOIN (SELECT @year(invoice_date) AS y, SUM(total) AS t FROM invoice"
    " GROUP BY 1) AS b ON b.y = a.y - 1"
)
def growth(m: Any) -> Any:
    """Growth from year to year"""
    by_year = m.Invoice.objects.annotate(y=Extract("invoice_date", "year")).values("y")
    rows = dict(by_year.annotate(t=Sum("total")).values_list("y", "t"))
    return [(year, rows[year] - rows[year - 1]) for year in rows if year - 1 in rows]


@reports(
    "SELECT @month(invoice_date), AVG(total) FROM invoice WHERE billing_country = 'USA'"
    " GROUP BY @month(invoice_date) HAVING COUNT(*) > 5"
)
def seasons(m: Any) -> Any:
    """Average sale by month of the year in one country"""
    rows = m.Invoice.objects.filter(billing_country="USA")
    months = rows.annotate(k=Extract("invoice_date", "month")).values("k")
    groups = months.annotate(n=Count("id"), a=Avg("total")).filter(n__gt=5)
    return groups.values_list("k", "a")


@reports(
    "SELECT c.customer_id FROM customer c WHERE NOT EXISTS (SELECT 1 FROM invoice i WHERE"
    " i.customer_id = c.customer_id AND i.invoice_date >= '2025-06-01')"
)
def lapsed(m: Any) -> Any:
    """Customers without a purchase since a day"""
    since = dt.datetime(2025, 6, 1)
    return m.Customer.objects.exclude(invoices__invoice_date__gte=since).values_list("id")


@reports(
    "SELECT customer_id FROM invoice WHERE @year(invoice_date) = 2021 INTERSECT"
    " SELECT customer_id FROM invoice WHERE @year(invoice_date) = 2024"
)
def returned(m: Any) -> Any:
    """Customers of 2021 who bought in 2024 as well"""
    one = m.Invoice.objects.filter(invoice_date__year=2021).values_list("customer")
    return one.intersection(
        m.Invoice.objects.filter(invoice_date__year=2024).values_list("customer")
    )


@reports(
    "SELECT COUNT(*) FROM customer c WHERE (SELECT COUNT(*) FROM invoice i WHERE i.customer_id ="
    " c.customer_id AND @year(i.invoice_date) = 2022) > (SELECT COUNT(*) FROM invoice i WHERE"
    " i.customer_id = c.customer_id AND @year(i.invoice_date) = 2023)"
)
def fewer_purchases(m: Any) -> Any:
    """Customers who bought more often in 2022 than in 2023"""
    rows = m.Customer.objects.annotate(
        a=Count("invoices", filter=Q(invoices__invoice_date__year=2022)),
        b=Count("invoices", filter=Q(invoices__invoice_date__year=2023)),
    )
    return [(rows.filter(a__gt=F("b")).count(),)]
