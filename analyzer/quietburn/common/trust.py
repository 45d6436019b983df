"""Decide whether a file that the user did not name may be trusted: somebody else may have put it there."""

import os
import stat
from pathlib import Path


def is_file(path: Path) -> bool:
    """Whether there is a file that can be seen; one in a folder that may not be searched can't."""
    try:
        return path.is_file()
    except OSError:
        return False


def why_not_trusted(path: Path, working_directory: Path) -> str | None:
    """Return why a file that nobody named may not decide anything, None where it may.

    Its owner must be the user, root, or the owner of the working directory (a container works on a
    checkout of another user's), and nobody else may be able to write it.
    """
    trusted = {0, os.geteuid(), working_directory.stat().st_uid}
    target = path.stat()
    for owner in (path.lstat().st_uid, target.st_uid):  # of a link, and of what it leads to
        if owner not in trusted:
            return f"it belongs to {_user(owner)}, who owns neither this process nor its working directory"
    if target.st_mode & stat.S_IWOTH:
        return "it is world-writable"
    if target.st_mode & stat.S_IWGRP and not _is_private_group(target.st_gid, target.st_uid):
        return "it is group-writable"
    return None


def _user(uid: int) -> str:
    import pwd

    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _is_private_group(gid: int, uid: int) -> bool:
    """Whether a group is its user's own, as most systems make one, and has no other member."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(uid), grp.getgrgid(gid)
    except KeyError:
        return False
    return user.pw_gid == gid and user.pw_name == group.gr_name and set(group.gr_mem) <= {user.pw_name}
