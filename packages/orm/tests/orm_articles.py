"""Models with full text search: articles of authors, notes on them."""

from __future__ import annotations

from treefold_orm import Model, SearchIndex, fields


class Writer(Model):
    """Is deleted along with what was written."""

    name = fields.CharField(max_length=40)


class Article(Model):
    """Searched in two fields, by word stems."""

    title = fields.CharField(max_length=80)
    body = fields.TextField(null=True)
    views = fields.IntegerField(default=0)
    slug = fields.SlugField(null=True, unique=True)
    secret = fields.TextField(null=True)
    follows = fields.ForeignKey("self", null=True, related_name="followed_by")
    writer = fields.ForeignKey(Writer, null=True, related_name="articles", on_delete="CASCADE")

    class Meta:
        table = "search_article"
        indexes = (SearchIndex(["title", "body"], config="english", weights="AD", name="searched"),)


class Note(Model):
    """Searched in one field, word by word."""

    article = fields.ForeignKey(Article, related_name="notes", on_delete="CASCADE")
    text = fields.TextField(db_column='it\'s "quoted" {0}')

    class Meta:
        table = "search note's"
        indexes = (SearchIndex(["text"]),)


ALL = (Writer, Article, Note)
