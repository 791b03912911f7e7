from dataclasses import dataclass


@dataclass(frozen=True)
class ConduitSettings:
    token_days: int = 60


app_settings = ConduitSettings
