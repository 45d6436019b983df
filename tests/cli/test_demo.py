"""`quietburn demo`, from the wheel as it is installed, where nothing of the checkout can be found."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from tests.cli.program import Done, environment, is_one_line, run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and lay it out as an installer does; return the folder that holds the package."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True, capture_output=True
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


def run_installed(site: Path, cwd: Path, *arguments: str) -> Done:
    """Run the unpacked wheel with the dependencies of this environment, and without its links to the checkout."""
    # A folder on PYTHONPATH is searched, but its .pth files, which lead to the checkout, are not read.
    path = f"{site}:{sysconfig.get_path('purelib')}"
    bare = Path(sys.base_prefix) / "bin" / "python3"  # not the virtual environment's, which knows the checkout
    done = subprocess.run(
        [str(bare), "-m", "quietburn", *arguments], cwd=cwd, capture_output=True, text=True, check=False,
        env=environment(PYTHONPATH=path, HOME=str(cwd)), stdin=subprocess.DEVNULL,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def test_the_demo_runs_the_three_jobs_from_the_wheel_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    done = run_installed(installed, tmp_path, "demo")

    assert done.status == 0, done.err
    assert done.out.startswith("$ quietburn analyze quietburn-demo/night.jsonl\n")
    assert "  Success rate" in done.out
    assert "  Usable rate" in done.out
    assert "$ quietburn alerts quietburn-demo/night.jsonl --out quietburn-demo/alerts" in done.out
    assert "$ quietburn gate quietburn-demo/night.jsonl --min-usable 95%" in done.out
    assert "repeat           quietburn gate quietburn-demo/night.jsonl" in done.out
    written = {path.name for path in (tmp_path / "quietburn-demo").rglob("*") if path.is_file()}
    assert {"night.jsonl", "alerts.yaml", "alerts_test.yaml", "README.md"} <= written


def test_the_package_is_the_wheels_own_and_carries_its_data(installed: Path, tmp_path: Path) -> None:
    done = run_installed(installed, tmp_path, "rules", "list", "--json")

    assert done.status == 0, done.err
    assert (installed / "quietburn" / "rules" / "late-but-200.toml").is_file()
    assert (installed / "quietburn" / "sample_ledgers" / "late-but-200" / "fires.jsonl").is_file()
    assert (installed / "quietburn" / "demo_night.jsonl").is_file()


def test_a_folder_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")

    taken, no_folder = run(tmp_path, "demo", "--out", "mine"), run(tmp_path, "demo", "--out", "file")

    for done, name in ((taken, "mine"), (no_folder, "file")):
        assert (done.status, done.out) == (2, "")
        assert is_one_line(done.err)
        assert f"--out {name}: " in done.err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
