from Models.people import User


def handler():
    """A plain function runs in a worker thread, and asks the database with the sync half."""
    return [{"id": user.id, "name": user.name} for user in User.objects.order_by("id")]
