#!/usr/bin/env python3
"""Compares the release binary with `lspci -nnk`, and says what it takes.

Run from the root of the repository after `cargo build --release`: `python3 benches/compare.py [RUNS]`.
The commands take turns, so that whatever else the machine does hits all of them; medians are printed. Peak memory is that
of the largest process of a command, by GNU time (package `time`): counted from here it would never be below Python's own.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BINARY = os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "release", "gpucheck")
LARGE = 500_000


def measured(command):
    """Wall time and processor time of one run, in milliseconds."""
    null = os.open(os.devnull, os.O_RDWR)
    redirect = [(os.POSIX_SPAWN_DUP2, null, stream) for stream in (0, 1, 2)]
    begun = time.perf_counter()
    process = os.posix_spawnp(command[0], command, os.environ, file_actions=redirect)
    _, status, usage = os.wait4(process, 0)
    wall = (time.perf_counter() - begun) * 1000
    os.close(null)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):
        sys.exit(f"{' '.join(command)} ended with {code}")
    return wall, (usage.ru_utime + usage.ru_stime) * 1000


def peak(command):
    """Peak memory of one run, in words."""
    time_program = shutil.which("time")
    if not time_program:
        return "not measured"
    run = subprocess.run([time_program, "-f", "%M", *command], capture_output=True, text=True)
    return f"{int(run.stderr.split()[-1]) / 1024:.1f}"


def large_machine(folder):
    """A capture of this machine, its entries repeated until it is large."""
    text = subprocess.run([BINARY, "capture"], capture_output=True, text=True, check=True).stdout
    first, made_by, entries = text.split("\n", 2)
    path = os.path.join(folder, "large.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{first}\n{made_by}\n")
        written = 0
        while written < LARGE:
            file.write(entries)
            written += len(entries)
    small = os.path.join(folder, "small.txt")
    with open(small, "w", encoding="utf-8") as file:
        file.write(text)
    return small, path


def many_functions(folder):
    """A tree with so many PCI functions that its worker can be stopped in the middle."""
    bus = os.path.join(folder, "tree", "sys", "bus", "pci", "devices")
    os.makedirs(os.path.join(folder, "tree", "sys", "kernel"))
    for number in range(3000):
        function = os.path.join(bus, f"0000:{number // 256:02x}:{number // 8 % 32:02x}.{number % 8}")
        os.makedirs(function)
        with open(os.path.join(function, "uevent"), "w", encoding="utf-8") as file:
            file.write("PCI_CLASS=20000\nPCI_ID=8086:1234\n")
    return os.path.join(folder, "tree")


def hung(tree):
    """Seconds of a run whose worker is stopped in the middle, with a limit of one second a source; None: it was over first."""
    command = [BINARY, "--root", tree, "--timeout", "1", "--fail-on", "never", "--format", "json"]
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    time.sleep(0.02)
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="utf-8") as file:
        workers = [int(word) for word in file.read().split()]
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    output, _ = process.communicate()
    took = time.perf_counter() - begun
    if not workers or process.returncode != 0 or b"no answer in time" not in output:
        return None
    # The rest of the report is complete: it is one document, with an answer of every other check.
    assert json.loads(output)["verdicts"], "the report lacks its answers"
    return took


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    if not os.path.exists(BINARY):
        sys.exit(f"{BINARY} is not there; run `cargo build --release` first")
    if not shutil.which("lspci"):
        sys.exit("lspci is not there; it is in the package pciutils")
    with tempfile.TemporaryDirectory() as folder:
        small, large = large_machine(folder)
        commands = {
            "lspci -nnk": ["lspci", "-nnk"],
            "gpucheck": [BINARY, "--fail-on", "never"],
            "gpucheck --quick": [BINARY, "--quick", "--fail-on", "never"],
            "gpucheck --format json": [BINARY, "--format", "json", "--fail-on", "never"],
            "gpucheck --version": [BINARY, "--version"],
            f"replay, {os.path.getsize(small) // 1000} kB": [BINARY, "--replay", small, "--fail-on", "never"],
            f"replay, {os.path.getsize(large) // 1000} kB": [BINARY, "--replay", large, "--fail-on", "never"],
        }
        results = {name: [] for name in commands}
        peaks = {name: peak(command) for name, command in commands.items()}
        for turn in range(runs + 1):
            for name, command in commands.items():
                figures = measured(command)
                if turn > 0:  # the first turn only warms the caches
                    results[name].append(figures)
        tree = many_functions(folder)
        stopped = [took for took in (hung(tree) for _ in range(5)) if took is not None]
    base = statistics.median(wall for wall, _ in results["lspci -nnk"])
    print(f"{runs} runs each, in turns\n")
    print("| command | wall ms | processor ms | peak MiB | wall, lspci = 1 |")
    print("| --- | --- | --- | --- | --- |")
    for name, rows in results.items():
        wall, processor = (statistics.median(column) for column in zip(*rows))
        print(f"| {name} | {wall:.1f} | {processor:.1f} | {peaks[name]} | {wall / base:.2f} |")
    if stopped:
        print(f"\nhung source, limit 1 s: {statistics.median(stopped):.3f} s, median of {len(stopped)}")
    print(f"\nbinary: {os.path.getsize(BINARY) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
