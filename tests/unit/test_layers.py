"""What imports what: the command line stays quick, and nothing reaches back to it."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "analyzer" / "quietburn"
HEAVY = ("duckdb", "pyarrow", "numpy", "jinja2", "rich.progress", "rich.console")


def loaded_by(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter holds after a statement."""
    code = f"{statement}\nimport sys\nprint('\\n'.join(['modules:', *sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("modules:\n")[2].split())


def test_the_command_line_imports_nothing_heavy_before_a_command_runs() -> None:
    loaded = loaded_by("import quietburn.cli.main")
    assert "typer" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_help_of_a_command_imports_nothing_heavy_either() -> None:
    loaded = loaded_by(
        "import sys, quietburn.cli.main\nsys.argv = ['quietburn', 'analyze', '--help']\n"
        "try:\n    quietburn.cli.main.main()\nexcept SystemExit:\n    pass"
    )
    assert [name for name in HEAVY if name in loaded] == []


def test_the_package_itself_imports_nothing_of_its_own() -> None:
    assert {name for name in loaded_by("import quietburn") if name.startswith("quietburn")} == {"quietburn"}


def imported(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write the whole name of a module"
            yield from (str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names))


def test_nothing_imports_the_command_line_but_the_way_to_start_it() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 20
    assert [path.name for path in files if "quietburn.cli.main" in imported(path)] == ["__main__.py"]
