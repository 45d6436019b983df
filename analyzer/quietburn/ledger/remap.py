"""The configuration's `[map]`: where a column is read from, whatever the dialect."""

from collections.abc import Mapping as Table

from quietburn.common.columns import COLUMNS, STORED_AS, UNSETTLED, logged_name
from quietburn.common.config import Config, MapEntry
from quietburn.common.messages import nearest
from quietburn.dialects.mapping import Alternative, Mapping
from quietburn.errors import ConfigError
from quietburn.ledger.units import GivenUnits


def remapped(mapping: Mapping, table: Table[str, MapEntry]) -> Mapping:
    """Return the dialect with the configured keys before its own.

    A duration is read as it comes: its unit is applied where units are settled, so that a store
    needs no second load when the unit is named later.
    """
    if not table:
        return mapping
    columns = dict(mapping.columns)
    for column, entry in table.items():
        keys = list(entry.sources)
        if column in UNSETTLED:
            unitless, _ = UNSETTLED[column]
            columns[unitless] = _first(Alternative.model_validate({"from": keys}), columns.get(unitless, ()))
            columns[column] = _first(Alternative.model_validate({"from": keys, "only": "text"}), columns.get(column, ()))
        else:
            columns[column] = _first(Alternative.model_validate({"from": keys, "unit": entry.unit}), columns.get(column, ()))
    return mapping.model_copy(update={"columns": columns})


def _first(way: Alternative, others: tuple[Alternative, ...]) -> tuple[Alternative, ...]:
    """Return the ways to a column, a new one first; no other plain way reads its keys."""
    left = []
    for other in others:
        keys = other.sources if other.transform else tuple(key for key in other.sources if key not in way.sources)
        if keys or not other.sources:
            left.append(other.model_copy(update={"sources": keys}))
    return (way, *left)


def given_units(config: Config) -> GivenUnits:
    """Return the units that the configuration names, by column and key. Raises ConfigError for what is no column."""
    known = [logged_name(column.name) for column in COLUMNS if column.given]
    for column, entry in config.map.items():
        if column not in known:
            raise ConfigError(f"configuration {config.origin}: map.{column}: unknown column{nearest(column, known)}.")
        if entry.unit and STORED_AS.get(column, column) not in (*UNSETTLED, "retry_after_s", "deadline_slack_ms"):
            raise ConfigError(f"configuration {config.origin}: map.{column}.unit: the column has no unit. Remove this key.")
    return {
        (column, key): entry.unit
        for column, entry in config.map.items()
        if column in UNSETTLED and entry.unit
        for key in entry.sources
    }
