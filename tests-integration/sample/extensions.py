"""What is set up once, with the application at hand."""

from Services.refusals import SoldOut
from treefold import Application, Request, Response, StaticFiles


class ShopWindow:
    """The public files, and the shop's own way to say that a book is sold out."""

    def setup(self, app: Application) -> None:
        app.mount("/web", StaticFiles("Public", index="index.html", max_age=60))

        @app.exception_handler(SoldOut)
        def sold_out(request: Request, error: SoldOut) -> Response:
            return Response.json({"sold_out": error.isbn, "left": error.left}, 409)


extensions = [ShopWindow()]
