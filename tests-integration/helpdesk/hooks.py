"""What runs when a process of the desk starts."""

from Models.people import Role, User
from settings import DeskSettings
from treefold import Application, get_logger
from treefold.auth import ahash_password


async def ensure_admin(settings: DeskSettings) -> None:
    """Create the first account, by which all others are made."""
    if not await User.objects.filter(role=Role.ADMIN).aexists():
        await User.objects.acreate(
            name="Admin",
            email=settings.admin_email,
            password_hash=await ahash_password(settings.admin_password),
            role=Role.ADMIN,
        )
        get_logger("desk").info("created the account of %s", settings.admin_email)


async def open_desk(app: Application) -> None:
    async with app.scope() as scope:
        await scope.call(ensure_admin)


on_startup = [open_desk]
