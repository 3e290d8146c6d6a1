"""Databases that are broken, shared, locked or gone."""

import os
import signal
import sqlite3
import subprocess
import time

from harness import (SECONDS_MAX, SHORT_SCENARIO, check, clean_environment, equal, expect, rows, said,
                     start_long_run, stop, write)


def database_case(program, folder, db, stderr):
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    expect(program, ["run", scenario, "--no-estimates", "--db", db], 2, stderr)


def case_database_below_a_file(program, folder):
    write(folder / "file", "")
    db = f"{folder}/file/results.db"
    database_case(program, folder, db,
                  f"railyard: error: can't open the database {db}: Not a directory\n"
                  "    the file and its folder must be writable\n")


def case_database_in_a_folder_that_takes_no_files(program, folder):
    # Not even root may make a file there.
    db = "/proc/results.db"
    database_case(program, folder, db,
                  f"railyard: error: can't open the database {db}: No such file or directory\n"
                  "    the file and its folder must be writable\n")


def case_database_is_a_folder(program, folder):
    db = str(folder)
    database_case(program, folder, db,
                  f"railyard: error: can't open the database {db}: unable to open database file\n"
                  "    the file and its folder must be writable\n")


def case_database_is_read_only(program, folder):
    db = folder / "results.db"
    sqlite3.connect(db).execute("VACUUM").connection.close()
    db.chmod(0o444)
    if os.access(db, os.W_OK):
        return  # root may write to it all the same
    database_case(program, folder, str(db),
                  f"railyard: error: can't write the database {db}: attempt to write a readonly "
                  "database\n    the file and its folder must be writable\n")


def case_database_is_a_text_file(program, folder):
    db = write(folder / "results.db", "no database, but long enough to be taken for one\n" * 50)
    database_case(program, folder, db,
                  f"railyard: error: can't write the database {db}: file is not a database\n"
                  "    it is not a database: choose another file\n")
    check((folder / "results.db").read_text().startswith("no database"), "the file was changed")


def case_database_of_something_else(program, folder):
    db = str(folder / "results.db")
    connection = sqlite3.connect(db)
    connection.execute("CREATE TABLE photographs (name TEXT)")
    connection.close()
    database_case(program, folder, db,
                  f"railyard: error: {db} is a database of something else\n"
                  "    choose another file\n")
    equal("tables", "[('photographs',)]", str(rows(db, "SELECT name FROM sqlite_master")))


def case_report_of_an_empty_database(program, folder):
    db = write(folder / "results.db", "")
    expect(program, ["report", db, "-o", str(folder / "report.html")], 2,
           f"railyard: error: {db} is empty: no run has been written to it\n"
           "    'railyard run SCENARIO.toml --db FILE' writes one\n")
    check(not (folder / "report.html").exists(), "a report of nothing was written")


def case_database_of_another_version(program, folder):
    db = str(folder / "results.db")
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    expect(program, ["run", scenario, "--no-estimates", "--db", db], 0, "")
    found = rows(db, "PRAGMA user_version")[0][0]
    connection = sqlite3.connect(db)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    database_case(program, folder, db,
                  f"railyard: error: {db} has schema version 999, this railyard reads and writes "
                  f"{found}\n    write to another file; what is in this one stays as it is, and its "
                  "scenarios can be run again\n")


def case_two_writers_on_one_database(program, folder):
    process, db = start_long_run(program, folder)
    try:
        database_case(program, folder, str(db),
                      f"railyard: error: can't write the database {db}: database is locked\n"
                      "    another program is writing to it: wait for it, or write to another "
                      "file\n")
        check(process.poll() is None, "the first writer ended")
    finally:
        stop(process)


def case_a_database_that_is_removed_meanwhile(program, folder):
    process, db = start_long_run(program, folder)
    try:
        db.unlink()
        time.sleep(2)  # a commit comes every second
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=SECONDS_MAX)
    finally:
        stop(process)
    check("it was removed or renamed meanwhile" in stderr and "the run goes on without it" in stderr,
          said(process.returncode, stderr))


def case_a_finished_database_is_one_file_that_any_folder_may_hold(program, folder):
    scenario = write(folder / "short.toml", SHORT_SCENARIO)
    db = folder / "x.db"
    expect(program, ["run", scenario, "--no-estimates", "--db", str(db)], 0, "")
    equal("files", "short.toml x.db", " ".join(sorted(p.name for p in folder.iterdir())))
    equal("journal", "[('delete',)]", str(rows(db, "PRAGMA journal_mode")))
    # Also one that was killed once, and is in its log's mode still.
    connection = sqlite3.connect(db)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    folder.chmod(0o555)
    db.chmod(0o444)

    def as_anybody():  # root may write everywhere
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

    done = subprocess.run([program.path, "report", str(db), "-o", "/dev/null", "--no-estimates"], env=clean_environment(),
                          capture_output=True, text=True, timeout=SECONDS_MAX, cwd="/", preexec_fn=as_anybody)
    folder.chmod(0o755)
    check(done.returncode == 0 or "the report's page is missing" in done.stderr, said(done.returncode, done.stderr))
