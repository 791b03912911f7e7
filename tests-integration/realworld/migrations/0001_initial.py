"""Create table user.
Create table tag.
Create table user_followed.
Create table article.
Create table article_tags.
Create table article_favorited_by.
Create table comment.
"""

from treefold_migrations import CreateTable, Migration
from treefold_orm import UniqueConstraint, fields

migration = Migration(
    after=[],
    operations=[
        CreateTable(
            "user",
            {
                "id": fields.BigAutoField(),
                "username": fields.CharField(max_length=60, unique=True),
                "email": fields.EmailField(unique=True),
                "password_hash": fields.CharField(max_length=200),
                "bio": fields.TextField(null=True),
                "image": fields.CharField(max_length=2000, null=True),
            },
            model="User",
        ),
        CreateTable(
            "tag",
            {
                "id": fields.BigAutoField(),
                "name": fields.CharField(max_length=60, unique=True),
            },
            model="Tag",
        ),
        CreateTable(
            "user_followed",
            {
                "id": fields.BigAutoField(),
                "from_user": fields.ForeignKey("user", "CASCADE"),
                "to_user": fields.ForeignKey("user", "CASCADE"),
            },
            model="User_followed",
            constraints=[UniqueConstraint("from_user", "to_user")],
        ),
        CreateTable(
            "article",
            {
                "id": fields.BigAutoField(),
                "slug": fields.SlugField(max_length=240, unique=True),
                "title": fields.CharField(max_length=200),
                "description": fields.TextField(),
                "body": fields.TextField(),
                "created_at": fields.DateTimeField(auto_now_add=True),
                "updated_at": fields.DateTimeField(auto_now=True),
                "author": fields.ForeignKey("user", "CASCADE"),
            },
            model="Article",
        ),
        CreateTable(
            "article_tags",
            {
                "id": fields.BigAutoField(),
                "article": fields.ForeignKey("article", "CASCADE"),
                "tag": fields.ForeignKey("tag", "CASCADE"),
            },
            model="Article_tags",
            constraints=[UniqueConstraint("article", "tag")],
        ),
        CreateTable(
            "article_favorited_by",
            {
                "id": fields.BigAutoField(),
                "article": fields.ForeignKey("article", "CASCADE"),
                "user": fields.ForeignKey("user", "CASCADE"),
            },
            model="Article_favorited_by",
            constraints=[UniqueConstraint("article", "user")],
        ),
        CreateTable(
            "comment",
            {
                "id": fields.BigAutoField(),
                "article": fields.ForeignKey("article", "CASCADE"),
                "author": fields.ForeignKey("user", "CASCADE"),
                "body": fields.TextField(),
                "created_at": fields.DateTimeField(auto_now_add=True),
                "updated_at": fields.DateTimeField(auto_now=True),
            },
            model="Comment",
        ),
    ],
)
