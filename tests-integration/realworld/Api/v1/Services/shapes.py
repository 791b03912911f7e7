"""Bodies and responses of this version."""

import datetime as dt
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

Name = Annotated[str, StringConstraints(max_length=60, pattern=r"^[^\x00-\x20\x7f/]+$")]
Email = Annotated[str, StringConstraints(max_length=254, pattern=r"^[\w.+-]+@\w+(\.\w+)+$")]
Password = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Line = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f]+$")]
Text = Annotated[str, StringConstraints(max_length=20_000, pattern=r"^[^\x00]+$")]
TagName = Annotated[str, StringConstraints(max_length=60, pattern=r"^[^\x00-\x1f]+$")]


class Shape(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, from_attributes=True)


class Credentials(Shape):
    email: str
    password: Password


class NewUser(Shape):
    username: Name
    email: Email
    password: Password


class UserChanges(TypedDict, total=False):
    username: Name
    email: Email
    password: Password
    bio: Text | None
    image: Line | None


class Login(Shape):
    user: Credentials


class Registration(Shape):
    user: NewUser


class UserUpdate(Shape):
    user: UserChanges


class Account(Shape):
    email: str
    token: str
    username: str
    bio: str | None
    image: str | None


class UserAnswer(Shape):
    user: Account


class Profile(Shape):
    username: str
    bio: str | None
    image: str | None
    following: bool


class ProfileAnswer(Shape):
    profile: Profile


class NewArticle(Shape):
    title: Line
    description: Text
    body: Text
    tag_list: list[TagName] = Field(default=[], max_length=20)


class ArticleChanges(TypedDict, total=False):
    title: Line
    description: Text
    body: Text


class ArticlePost(Shape):
    article: NewArticle


class ArticleUpdate(Shape):
    article: ArticleChanges


class Summary(Shape):
    slug: str
    title: str
    description: str
    tag_list: list[str]
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
    offset: int = Field(default=0, ge=0, le=1_000_000)


class ArticleSearch(Page):
    tag: TagName | None = None
    author: Name | None = None
    favorited: Name | None = None


class ArticleList(Shape):
    articles: list[Summary]
    articles_count: int


class NewComment(Shape):
    body: Text


class CommentPost(Shape):
    comment: NewComment


class CommentShape(Shape):
    id: int
    created_at: dt.datetime
    updated_at: dt.datetime
    body: str
    author: Profile


class CommentAnswer(Shape):
    comment: CommentShape


class CommentList(Shape):
    comments: list[CommentShape]


class TagList(Shape):
    tags: list[str]
