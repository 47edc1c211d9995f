"""The release programs as files: how the compiler and the linker protect them, and which libraries they load."""
import os
import re
import subprocess

import pytest

from harness import REPO

PROGRAMS = ["queen", "queen-platform"]


def read(program, *options):
    path = os.path.join(REPO, "build", program)
    return subprocess.run(["readelf", "-W", *options, path], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_program_is_loaded_at_a_random_address(program):
    assert re.search(r"Type:\s+DYN", read(program, "-h"))
    assert re.search(r"\(FLAGS_1\).*\bPIE\b", read(program, "-d"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_addresses_of_library_functions_are_read_only(program):
    assert "GNU_RELRO" in read(program, "-l")
    assert re.search(r"\(FLAGS_1\).*\bNOW\b", read(program, "-d")), "with lazy binding they stay writable"


@pytest.mark.parametrize("program", PROGRAMS)
def test_stack_and_data_cannot_be_executed(program):
    segments = read(program, "-l")
    assert re.search(r"GNU_STACK .* RW ", segments)
    assert not re.search(r"LOAD .* RWE ", segments)


@pytest.mark.parametrize("program", PROGRAMS)
def test_overflows_of_the_stack_and_of_buffers_are_noticed(program):
    symbols = read(program, "--dyn-syms")
    assert "__stack_chk_fail" in symbols
    assert "__memcpy_chk" in symbols and "__snprintf_chk" in symbols


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="CET is a feature of x86-64")
@pytest.mark.parametrize("program", PROGRAMS)
def test_indirect_jumps_land_only_where_they_may(program):
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", os.path.join(REPO, "build", program)], check=True, capture_output=True,
                          text=True).stdout
    assert code.count("endbr64") > 1000, "-fcf-protection marks every function"


def test_the_broker_does_not_load_the_library_of_mysql():
    libraries = subprocess.run(["ldd", os.path.join(REPO, "build", "queen")], check=True, capture_output=True, text=True).stdout
    assert "libpq.so" in libraries and not re.search("mysql|mariadb", libraries)
