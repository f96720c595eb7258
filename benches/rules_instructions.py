"""Instructions of one call of every rule, counted by callgrind.

    cargo build --release -p unspool-benches --bin unspool-rules
    python benches/rules_instructions.py target/release/unspool-rules

Each rule runs twice, CALLS and twice as many times; the difference divided by CALLS is one call, and that of `copy` (the
fresh copy of the scores that each call works on) is taken off. Prints a Markdown table. Needs valgrind.
"""

import argparse
import re
import subprocess

CALLS = 20


def instructions(binary, rounds, name):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", binary, str(rounds), name]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return int(re.search(r"Collected : (\d+)", told).group(1))


def a_call(binary, name):
    return (instructions(binary, 2 * CALLS, name) - instructions(binary, CALLS, name)) / CALLS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("names", nargs="*", help="rules; all of them by default")
    parser.add_argument("--step", type=float, help="instructions of a step of the model, to tell the share of")
    arguments = parser.parse_args()
    table = subprocess.run([arguments.binary, "1"], check=True, capture_output=True, text=True).stdout
    names = arguments.names or [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    copy = a_call(arguments.binary, "copy")
    print("| rules | instructions | share of a step |\n|---|---|---|")
    for name in names:
        count = max(a_call(arguments.binary, name) - copy, 0.0)
        share = f"{count / arguments.step:.3%}" if arguments.step else ""
        print(f"| {name} | {count:,.0f} | {share} |", flush=True)


main()
