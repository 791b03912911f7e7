"""Bodies and responses of this version; those that did not change are of version 1."""

import datetime as dt

from pydantic import Field

from Api.v1.Services.shapes import (
    ArticleUpdate as ArticleUpdate,
    CommentAnswer as CommentAnswer,
    CommentList as CommentList,
    CommentPost as CommentPost,
    Line,
    Login as Login,
    Name,
    Profile,
    ProfileAnswer as ProfileAnswer,
    Registration as Registration,
    Shape,
    TagList as TagList,
    TagName,
    Text,
    UserAnswer as UserAnswer,
    UserUpdate as UserUpdate,
)


class NewArticle(Shape):
    title: Line
    description: Text
    body: Text
    tag_list: list[TagName] = Field(default=[], max_length=20, alias="tags")


class ArticlePost(Shape):
    article: NewArticle


class Summary(Shape):
    slug: str
    title: str
    description: str
    tags: list[str] = Field(validation_alias="tag_list", serialization_alias="tags")
    created_at: dt.datetime
    updated_at: dt.datetime
    favorited: bool
    favorites_count: int
    author: Profile


class FullArticle(Summary):
    body: str


class ArticleAnswer(Shape):
    article: FullArticle


class Page(Shape):
    limit: int = Field(default=20, ge=1, le=100)
    after: str | None = None


class ArticleSearch(Page):
    tag: TagName | None = None
    author: Name | None = None
    favorited: Name | None = None


class ArticleList(Shape):
    articles: list[Summary]
    next: str | None
