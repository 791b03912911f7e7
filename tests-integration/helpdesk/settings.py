"""Settings of the desk: the table `[app]`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DeskSettings:
    admin_password: str
    mail_secret: str
    admin_email: str = "admin@desk.example"
    sender: str = "desk@desk.example"
    outgoing: Path = Path("outgoing")
    exports: Path = Path("exports")
    answer_hours: int = 8
    close_after_days: int = 14


app_settings = DeskSettings
