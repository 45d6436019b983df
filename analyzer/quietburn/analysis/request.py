"""Build the request of an analysis from the options of the command line and of Python callers."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from quietburn.common.config import Config, load_config
from quietburn.common.timerange import span, zone_of
from quietburn.errors import UsageError

if TYPE_CHECKING:
    from quietburn.analysis.run import Request


def request_from(
    *,
    since: str | None = None,
    until: str | None = None,
    last_night: bool = False,
    tz: str | None = None,
    dialect: str | None = None,
    map_file: Path | None = None,
    settings: Iterable[str] | None = None,
    only: Iterable[str] | None = None,
    skip: Iterable[str] | None = None,
    config: Config | Path | None = None,
    store: Path | None = None,
    cpu: Path | None = None,
    join: str | None = None,
) -> "Request":
    """Return what the options ask for; without `config` the configuration is found upward from the working directory.

    Raises QuietburnError naming the option or the file.
    """
    from quietburn.dialects.mapping import load_mapping

    if join not in (None, "request_id"):
        raise UsageError(f"--join {join}: logs can be joined only by request_id.")
    configuration = config if isinstance(config, Config) else load_config(config)
    zone_name = tz or configuration.tz
    asked = span(since, until, last_night=last_night, zone=zone_of(zone_name))
    mapping = load_mapping(map_file) if map_file else None
    # Only now what takes long to import: a wrong call is answered at once.
    from quietburn.analysis.run import Request

    return Request(
        config=configuration,
        span=asked,
        zone="UTC" if zone_name and zone_name.upper() == "UTC" else zone_name,
        dialect=dialect,
        mapping=mapping,
        settings=tuple(settings or ()),
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        store=store,
        cpu=cpu,
        join=join is not None,
    )
