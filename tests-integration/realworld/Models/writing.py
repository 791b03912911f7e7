from __future__ import annotations

from Models.people import User
from treefold.orm import CASCADE, Count, Model, Prefetch, Q, QuerySet, Reverse, fields


class Tag(Model):
    name = fields.CharField(max_length=60, unique=True)

    class Meta:
        ordering = ("name",)


class ArticleQuery(QuerySet["Article"]):
    def seen_by(self, viewer: User | None) -> ArticleQuery:
        """Load all that a response shows, with the favourites and follows of the viewer."""
        author = Prefetch("author", User.objects.seen_by(viewer))
        return self.prefetch_related("tags", author).annotate(
            favorites_count=Count("favorited_by"),
            favorited=Q(favorited_by=viewer.id if viewer else 0),
        )


class Article(Model):
    slug = fields.SlugField(max_length=240, unique=True)
    title = fields.CharField(max_length=200)
    description = fields.TextField()
    body = fields.TextField()
    created_at = fields.DateTimeField(auto_now_add=True)
    updated_at = fields.DateTimeField(auto_now=True)
    author = fields.ForeignKey(User, CASCADE, related_name="articles")
    author_id: int
    tags = fields.ManyToManyField(Tag, related_name="articles")
    favorited_by = fields.ManyToManyField(User, related_name="favorites")
    comments: Reverse[Comment]
    favorites_count: int
    favorited: bool
    objects = ArticleQuery.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")

    @property
    def tag_list(self) -> list[str]:
        return [tag.name for tag in self.tags.all()]


class CommentQuery(QuerySet["Comment"]):
    def seen_by(self, viewer: User | None) -> CommentQuery:
        """Load the authors, and whether the viewer follows them."""
        return self.prefetch_related(Prefetch("author", User.objects.seen_by(viewer)))


class Comment(Model):
    article = fields.ForeignKey(Article, CASCADE, related_name="comments")
    author = fields.ForeignKey(User, CASCADE, related_name="comments")
    author_id: int
    body = fields.TextField()
    created_at = fields.DateTimeField(auto_now_add=True)
    updated_at = fields.DateTimeField(auto_now=True)
    objects = CommentQuery.as_manager()

    class Meta:
        ordering = ("-id",)
