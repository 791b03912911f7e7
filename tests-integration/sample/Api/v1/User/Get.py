from Models.people import Named, User


def handler() -> list[Named]:
    """List everybody; a plain function runs in a thread, with the sync half of the ORM."""
    return [{"id": user.id, "name": user.name} for user in User.objects.order_by("id")]
