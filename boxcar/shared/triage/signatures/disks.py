"""Disks and file systems: full, over a quota, read-only, away. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import Signature

_FREE = mark("free some space or use a larger disk; verified results are pruned automatically")
_SHM = mark("use fewer data loader workers, or a larger /dev/shm (another box or --shm-size)")

SIGNATURES = (
    Signature(
        "ROFS",
        Course.OTHER_BOX,
        r"Read-only file system|\[Errno 30\]|os error 30\b|EROFS",
        mark("a disk became read-only"),
        mark(
            "a failing disk turns read-only: rent another box, unless the path is meant to be "
            "read-only"
        ),
    ),
    Signature(
        "DP15",
        Course.FIX_CONFIG,
        r"killed by signal: Bus error|[Uu]nexpected bus error encountered in worker"
        r"|insufficient shared memory|out of shared memory|unable to allocate shared memory"
        r"|unable to (?:open shared memory object|write to file|mmap"
        r"|resize file)[^\n]{0,120}/torch_"
        r"|received 0 items of ancdata|No space left on device[^\n]{0,80}/dev/shm"
        r"|/dev/shm[^\n]{0,160}(?:No space left on device|[Ee]rror)"
        r"|[Ee]rror while creating shared memory segment|could not resize shared memory segment"
        r"|bus error[^\n]{0,80}(?:shm|shared memory)",
        mark("/dev/shm is too small for the data loader"),
        _SHM,
        explained_by=("FD",),
    ),
    Signature(
        "WATCHES",
        Course.FIX_CONFIG,
        r"inotify (?:watch|instance)|file watchers reached"
        r"|upper limit on the total number of inotify",
        mark("the box's limit of watched files is reached"),
        mark("watch fewer files, or raise fs.inotify.max_user_watches"),
    ),
    Signature(
        "QUOTA",
        Course.FREE_SPACE,
        r"[Dd]isk quota exceeded|\[Errno 122\]|os error 122\b|EDQUOT|[Qq]uota exceeded for"
        r"|over (?:its |your )?(?:disk |storage )?quota|storage quota|[Ss]torage limit exceeded"
        r"|exceed\w* (?:jobfs|disk|storage|home|scratch|inode)\w* quota",
        mark("a disk quota is exceeded"),
        _FREE,
    ),
    Signature(
        "U7",
        Course.FREE_SPACE,
        r"(?:out of|no (?:free|more)) inodes|inodes? (?:exhausted|usage is at 100)",
        mark("a disk has no inodes left: too many files"),
        mark("delete or pack folders of small files"),
    ),
    Signature(
        "U7b",
        Course.FREE_SPACE,
        r"No space left on device[^\n]{0,40}'?(?:/tmp|/root/\.cache|/home/[^\s/]+/\.cache"
        r"|~/\.cache)"
        r"|(?:/tmp/|/\.cache/)[^\n]{0,200}No space left on device",
        mark("the system disk is full: a cache or /tmp is on it"),
        mark(
            "under env: in job.yaml, point HF_HOME, TORCH_HOME, PIP_CACHE_DIR and TMPDIR to the "
            "data disk"
        ),
    ),
    Signature(
        "DISK",
        Course.FREE_SPACE,
        r"[Nn]o space left|\[Errno 28\]|os error 28\b|ENOSPC|errno[ =:]+28\b"
        r"|PytorchStreamWriter failed writing|basic_ios::clear: iostream error"
        r"|unexpected pos \d+ vs \d+"
        r"|database or disk is full"
        r"|\d+ requested and \d+ written|[Nn]ot enough (?:free )?(?:disk|storage) space"
        r"|[Nn]ot enough free disk|[Ii]nsufficient (?:disk|storage) space|disk (?:is )?full"
        r"|[Dd]isk space is (?:too )?low"
        r"|There is not enough space on the disk|[Ff]ile size limit exceeded|\[Errno 27\]"
        r"|low on resource: ephemeral-storage|[Uu]sage of EmptyDir volume"
        r"|ephemeral.{0,20}storage.{0,40}exceed"
        r"|[Cc]heck your disk space|Failed to write tensor|write error: No space"
        r"|failed writing file data/|设备上没有空间"
        r"|(?:磁盘|数据盘|系统盘|硬盘|存储)(?:空间)?(?:不足|已满|满了)",
        mark("a disk is full"),
        _FREE,
    ),
    Signature(
        "STALE",
        Course.RESUME_SAME,
        r"disk I/O error|database is locked"
        r"|[Uu]nable to lock file|busy: '[^'\n]{0,200}\.nfs[0-9a-f]{8}"
        r"|[Ss]tale (?:NFS )?file handle|Transport endpoint is not connected|Input/output error"
        r"|\[Errno (?:5|107|112|116|121)\]|Remote I/O error|Host is down|os error (?:5|116)\b"
        r"|nfs: server \S+ not responding|ESTALE|LustreError"
        r"|(?:[Ss]ocket not connected|Connection timed out)[^\n]{0,40}(?:/mnt|/nfs)"
        r"|Unable to attach or mount volumes|FailedAttachVolume|Multi-Attach error|\[Errno 14\]"
        r"|MountVolume\S* failed|mount\.nfs\w*: |\[Errno 10[38]\]"
        r"|Cannot send after transport endpoint shutdown",
        mark("a file system is unavailable, or a file is in use by another process"),
        mark("nothing while it waits; if it persists, remount it or ask the platform"),
        waits_s=(60.0, 300.0, 900.0),
    ),
)
