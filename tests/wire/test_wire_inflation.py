"""Batches made to exhaust memory: their records are inflated up to a limit, and refused beyond."""

import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from crc32c import crc32c

from sim.units import KIB, MIB
from sim.wire.compression import CODECS, INFLATED_BYTES_MAX, compress, decompress
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import HEADER_BYTES

ROOT = Path(__file__).parents[2]
TOO_MUCH = INFLATED_BYTES_MAX + MIB
RESIDENT_MAX = 3 * INFLATED_BYTES_MAX


def gzip_bomb():
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [packer.compress(bytes(MIB)) for _ in range(TOO_MUCH // MIB)]
    return b"".join(parts) + packer.flush()


def snappy_bomb():
    stream = compress("snappy", bytes(32 * KIB))
    return stream[:16] + stream[16:] * (TOO_MUCH // (32 * KIB))


def lz4_bomb():
    """Blocks of 64 KiB between the header of 7 bytes and the end mark of 4."""
    stream = compress("lz4", bytes(64 * KIB))
    return stream[:7] + stream[7:-4] * (TOO_MUCH // (64 * KIB)) + stream[-4:]


def zstd_bomb(size=4 * 1024 * MIB):
    """Blocks of 4 bytes that repeat one byte 128 KiB times (RFC 8878); no size is declared."""
    block, blocks = 128 * KIB, size // (128 * KIB)
    repeated = (1 << 1 | block << 3).to_bytes(3, "little") + b"\0"
    last = (1 | 1 << 1 | block << 3).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd\x00\x58" + repeated * (blocks - 1) + last


BOMBS = {"gzip": gzip_bomb, "snappy": snappy_bomb, "lz4": lz4_bomb, "zstd": zstd_bomb}


def bomb_batch(codec="zstd"):
    """A batch of one record whose checksum is right."""
    body = BOMBS[codec]()
    rest = struct.pack(
        ">hiqqqhii", CODECS.index(codec), 0, 1_700_000_000_000, 1_700_000_000_000, -1, -1, -1, 1
    )
    checked = rest + body
    head = struct.pack(">qiibI", 0, HEADER_BYTES - 12 + len(body), 0, 2, crc32c(checked))
    return head + checked


MEASURED = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
told = child.stdout.read()
usage = os.wait4(child.pid, 0)[2]
sys.stdout.write(f"{usage.ru_maxrss}\\n{told}")
"""
"""Runs a command from a small process: what a process had before its exec counts as its own."""


def resident(*command):
    """Output of a process, and the most memory that it ever had."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, sys.executable, *map(str, command)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    memory, told = done.stdout.split("\n", 1)
    return told, int(memory) * KIB


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_stream_that_inflates_beyond_the_limit_is_refused_and_takes_no_more_memory(
    codec, tmp_path
):
    stream = tmp_path / "stream"
    stream.write_bytes(BOMBS[codec]())
    script = (
        "import sys; from pathlib import Path\n"
        "from sim.wire.compression import decompress\n"
        f"decompress({codec!r}, Path(sys.argv[1]).read_bytes())\n"
    )
    told, memory = resident("-c", script, stream)
    assert f"of {codec} inflate to more than the {INFLATED_BYTES_MAX} that are allowed" in told
    assert memory < RESIDENT_MAX


def test_a_snappy_block_that_declares_too_much_is_refused_before_it_is_inflated():
    with pytest.raises(MalformedBytes, match="bytes of snappy inflate to more than"):
        decompress("snappy", b"\xff\xff\xff\xff\x0f" + bytes(100))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_what_is_well_packed_and_within_the_limit_is_inflated(codec):
    body = bytes(5 * MIB) + os.urandom(1000)
    assert decompress(codec, compress(codec, body)) == body


def segment(directory):
    log = directory / "orders-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(bomb_batch())
    return log


def test_dump_says_of_which_batch_it_does_not_show_the_records_and_what_to_do(tmp_path):
    log = segment(tmp_path)
    assert log.stat().st_size < 135_000
    told, memory = resident("-m", "sim", "dump", log, "--deep-iteration")
    assert "Error at position 0: " in told
    assert f"inflate to more than the {INFLATED_BYTES_MAX} that are allowed" in told
    assert "look at the batch without its records" in told
    assert memory < RESIDENT_MAX
    without, _ = resident("-m", "sim", "dump", log)
    assert "isvalid: true" in without
    assert "Error" not in without


def test_the_doctor_does_not_open_what_would_not_fit(tmp_path):
    segment(tmp_path)
    _, memory = resident("-m", "sim", "doctor", tmp_path)
    assert memory < RESIDENT_MAX


def test_sparks_reader_takes_the_batch_for_malformed(tmp_path):
    script = (
        "import sys; from pathlib import Path\n"
        "from analysis.verify.segments import runs\n"
        "print([s for part in runs(Path(sys.argv[1])) for s in part['status'].to_pylist()])\n"
    )
    told, memory = resident("-c", script, segment(tmp_path))
    assert told.strip() == "['malformed']"
    assert memory < RESIDENT_MAX
