"""Where the files of a rule lie in a checkout."""

from dataclasses import dataclass
from pathlib import Path

from quietburn.common.resources import rules_dir
from quietburn.errors import UsageError


@dataclass(frozen=True)
class Checkout:
    """The folders of a checkout; a rule's Python files have its id with underscores for names."""

    root: Path

    @property
    def rules(self) -> Path:
        """Return the folder of rule files."""
        return self.root / "rules"

    def rule_file(self, rule_id: str) -> Path:
        """Return the rule file."""
        return self.rules / f"{rule_id}.toml"

    def case_file(self, rule_id: str) -> Path:
        """Return the file that says what stands in the rule's ledgers, and what must be found there."""
        return self.root / "fixtures" / "rules" / "cases" / f"{rule_id.replace('-', '_')}.py"

    def fault_file(self, rule_id: str) -> Path:
        """Return the file of a fault that a new rule plants into the healthy day."""
        return self.root / "fixtures" / "days" / f"{rule_id.replace('-', '_')}_faults.py"

    def fixtures(self, rule_id: str) -> Path:
        """Return the folder of generated ledgers."""
        return self.root / "fixtures" / "rules" / rule_id

    def written_by_hand(self, rule_id: str) -> tuple[Path, ...]:
        """Return the files that the rule's author writes."""
        return self.rule_file(rule_id), self.case_file(rule_id), self.fault_file(rule_id)

    def name(self, path: Path) -> str:
        """Return a file's name below the checkout."""
        return path.relative_to(self.root).as_posix()


def checkout() -> Checkout:
    """Return the checkout that this program runs from. Raises UsageError where it was installed without one."""
    root = rules_dir().parent
    if not (root / "fixtures" / "rules" / "cases").is_dir():
        raise UsageError("this command needs a checkout of quietburn. Install it from one with `pip install -e .`.")
    return Checkout(root)
