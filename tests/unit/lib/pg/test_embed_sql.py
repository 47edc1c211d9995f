#!/usr/bin/env python3
"""tools/embed_sql.py: what it makes of a folder, and what it refuses."""
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv.pop(1)
sys.path.insert(0, os.path.dirname(TOOL))
sys.dont_write_bytecode = True
import embed_sql  # noqa: E402


def read(path):
    with open(path) as f:
        return f.read()


class Embed(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.sql = os.path.join(self.tmp.name, "sql")
        os.mkdir(self.sql)

    def tearDown(self):
        self.tmp.cleanup()

    def put(self, name, text):
        path = os.path.join(self.sql, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def run_tool(self, *roots):
        out = [os.path.join(self.tmp.name, n) for n in ("o.c", "o.h", "o.d", "columns.h")]
        roots = roots or (("pg", "queen", "queen", self.sql),)
        p = subprocess.run([sys.executable, TOOL, "--include", "pg/o.h", "--source", out[0],
                            "--header", out[1], "--depfile", out[2], "--constants", out[3],
                            *(word for r in roots for word in ("--root", *r))],
                           capture_output=True, text=True)
        if p.returncode:
            return None, p.stderr
        self.constants = read(out[3])
        return [read(n) for n in out[:3]], ""

    def refused(self, words):
        out, err = self.run_tool()
        self.assertIsNone(out)
        self.assertIn(words, err)

    def test_comments_go_and_literals_stay(self):
        strip = embed_sql.strip_comments
        self.assertEqual(strip("-- head\nselect 1 -- tail\n , '--no  /*x*/', \"a--b\" /* y */ ;\n"),
                         "select 1 , '--no  /*x*/', \"a--b\"")
        self.assertEqual(strip("select $x$ -- kept\n$x$, E'\\'--', $1 -- gone"),
                         "select $x$ -- kept\n$x$, E'\\'--', $1")

    def test_functions_get_a_search_path_unless_they_are_inlined(self):
        def pinned(text):
            return embed_sql.pin_search_path("x.sql", text, "queen")

        head = "-- as $ in a comment\ncreate or replace function queen.f(a text)\nreturns text\nlanguage "
        self.assertEqual(pinned(head + "plpgsql stable\nas $$ begin end $$;"),
                         head + "plpgsql stable\nset search_path = queen, pg_temp\nas $$ begin end $$;")
        self.assertEqual(pinned(head + "sql\nas $$ select 1 $$;"), head + "sql\nset search_path = queen, pg_temp\nas $$ select 1 $$;")
        for same in ("sql stable\nas $$ select 1 $$;", "sql -- why\n immutable\nas $$ select 1 $$;",
                     "plpgsql set search_path = crm, pg_temp as $$ begin end $$;"):
            self.assertEqual(pinned(head + same), head + same)
        self.assertIn("set search_path", pinned(head + "sql -- not stable\nas $$ select 1 $$;"))
        self.assertEqual(pinned("create or replace view queen.v as select 1"), "create or replace view queen.v as select 1")

    def test_a_function_of_another_language_is_refused(self):
        self.put("procs/a.sql", "create or replace function queen.a() returns int language c as $$x$$")
        self.refused("a.sql: a function must be `language plpgsql` or `language sql`")

    def test_an_empty_folder_is_fine(self):
        (source, header, _), _ = self.run_tool()
        self.assertIn("PG_STMT_COUNT = 0", header)
        self.assertIn("0, 0,", source)

    def test_statements_are_numbered_by_name(self):
        self.put("push/statements.sql", "-- About pushes.\n-- statement: b\n-- returns: n int4\nselect 2;\n")
        self.put("pop/statements.sql", "-- statement: a\n-- returns: nothing\n-- Why.\nselect \"x\\y?\" -- é\n, 'é';\n\n-- statement: c\n-- returns: n int4\nselect 3;\n")
        (source, header, _), _ = self.run_tool()
        self.assertIn("PG_STMT_COUNT = 3", header)
        self.assertLess(source.index("pg_stmt_a"), source.index("pg_stmt_b"))
        self.assertLess(source.index("pg_stmt_b"), source.index("pg_stmt_c"))
        self.assertIn(r'"select \"x\\y\?\" , ' + r"'\303\251'" + '"', source)

    def test_statements_declare_what_they_return(self):
        self.put("push/statements.sql", "-- statement: a\n-- Why.\n-- returns: lane int8, name text?,\n-- returns: at timestamptz, ...\nselect 1")
        self.put("pop/statements.sql", "-- statement: b\n-- returns: nothing\nselect 1")
        (source, _, _), _ = self.run_tool()
        self.assertIn('0, "lTz."}', source)
        self.assertIn('1, ""}', source)
        for wrong in ("", "-- returns: lane bigint", "-- returns: lane", "-- returns: ..., lane int8"):
            self.put("push/statements.sql", "-- statement: a\n" + wrong + "\nselect 1")
            self.refused("returns")

    def test_columns_and_numbers_become_constants(self):
        self.put("push/statements.sql", """-- columns row: lane int8, name text?,
-- columns row: at timestamptz
-- enum push_status: PUSH_STORED 0, PUSH_GONE 3
-- statement: a
-- returns: @row
select 1;
-- statement: b
-- returns: kind int2, @row?, more bool, ...
select 1;
""")
        (source, header, _), _ = self.run_tool()
        self.assertIn('0, "lTz"}', source)
        self.assertIn('1, "hLTZb."}', source)
        self.assertIn('#include "pg/columns.h"', header)
        self.assertIn("enum { ROW_COL_LANE = 0, ROW_COL_NAME = 1, ROW_COL_AT = 2 };", self.constants)
        self.assertIn("enum { B_COL_KIND = 0, B_COL_ROW = 1, B_COL_MORE = 4, B_COL_REST = 5 };", self.constants)
        self.assertIn("enum push_status { PUSH_STORED = 0, PUSH_GONE = 3 };", self.constants)
        self.assertNotIn(" A_COL_", self.constants)
        for wrong, words in (("-- returns: @nothing_such", "not known"), ("-- returns: a int4, a int4", "two columns"),
                             ("-- enum e: low 1\n-- returns: nothing", "enum e")):
            self.put("push/statements.sql", "-- statement: a\n" + wrong + "\nselect 1")
            self.refused(words)

    def test_numbers_in_functions_must_be_those_of_their_enum(self):
        self.put("push/statements.sql", "-- enum push_status: PUSH_STORED 0, PUSH_GONE 3\n-- statement: a\n-- returns: nothing\nselect 1;\n")
        function = "%s\ncreate or replace function queen.f() returns int2 language plpgsql as $$ begin %s end $$;\n"
        good = ("status := 3;", "if r.status = 0 or v.status in (0, 3) then", "x := case r.status when 0 then 'a' when 3 then 'b' end;",
                "select case when true then 3 else 0 end::int2 as status;", "status := 3; return 404;")
        for body in good:
            self.put("push/f.sql", function % ("-- numbers: status push_status", body + " status := 0;"))
            self.assertEqual(self.run_tool()[1], "", body)
        for body in ("status := 1;", "if r.status <> 2 then", "if status[i] in (0, 1) then", "x := case r.status when 0 then 'a' when 4 then 'b' end;",
                     "status := 0; select case when true then 5 else 0 end::int2 as x;", "status := 0; x := 7::int2;"):
            self.put("push/f.sql", function % ("-- numbers: status push_status", body))
            self.refused("no such number")
        self.put("push/f.sql", function % ("-- Without the line.", "status := 3;"))
        self.refused("needs a line")
        self.put("push/f.sql", function % ("-- numbers: status nothing_such", "status := 3;"))
        self.refused("not known")
        self.put("push/f.sql", function % ("-- numbers: why push_status", "return 1;"))
        self.refused("is not used")
        self.put("push/f.sql", function % ("-- An HTTP status.", "status := 404;"))
        self.assertEqual(self.run_tool()[1], "")

    def test_bad_statements_are_refused(self):
        self.put("push/statements.sql", "select 1;\n")
        self.refused("begins without")
        self.put("push/statements.sql", "-- statement: a\n-- nothing\n")
        self.refused("statement a: is empty")
        self.put("push/statements.sql", "-- statement: A\nselect 1;\n")
        self.refused("lower-case")
        self.put("push/statements.sql", "-- statement: a\n-- returns: nothing\nselect 1;\n")
        self.put("pop/statements.sql", "-- statement: a\n-- returns: nothing\nselect 2;\n")
        self.refused("another statement is called a")

    def test_needs_decide_the_order(self):
        self.put("procs/a.sql", "-- needs: c, b\nselect 'A'")
        self.put("procs/b.sql", "-- needs: v\nselect 'B'")
        self.put("procs/c.sql", "select 'C'")
        self.put("views/v.sql", "select 'V'")
        (source, _, _), _ = self.run_tool()
        at = {c: source.index(f"select '{c}'") for c in "ABCV"}
        self.assertTrue(at["V"] < at["B"] < at["A"] and at["C"] < at["A"], at)

    def test_a_circle_is_refused(self):
        self.put("procs/a.sql", "-- needs: b\n")
        self.put("procs/b.sql", "-- needs: a\n")
        self.refused("a -> b -> a")

    def test_an_unknown_need_is_refused(self):
        self.put("procs/a.sql", "-- needs: nobody\n")
        self.refused("needs nobody")

    def test_a_gap_in_the_numbers_is_refused(self):
        self.put("schema/0001_a.sql", "select 1")
        self.put("schema/0003_c.sql", "select 1")
        self.refused("expected number 0002")

    def test_the_checksum_is_that_of_the_file(self):
        self.put("schema/0001_a.sql", "select 1 -- kept\n")
        (source, _, _), _ = self.run_tool()
        path = os.path.join(self.sql, "schema/0001_a.sql")
        digest = subprocess.run(["sha256sum", path], capture_output=True, text=True).stdout[:64]
        self.assertIn(digest, source)

    def test_a_folder_is_one_migration_in_parts(self):
        self.put("schema/0001_baseline/10_b.sql", "select 'B';\n")
        self.put("schema/0001_baseline/09_a.sql", "select 'A';\n")
        self.put("schema/0002_next.sql", "select 'C';\n")
        self.put("schema/SHA256SUMS", "")
        (source, _, deps), _ = self.run_tool()
        self.assertIn('{1, "baseline",\n    "select \'A\';\\n"\n    "\\n"\n    "select \'B\';\\n",', source)
        self.assertIn("pg_queen_migrations, 2,", source)
        self.assertIn("schema/0001_baseline/10_b.sql", deps)
        self.assertIn("schema/0001_baseline ", deps)

    def test_odd_names_of_migrations_are_refused(self):
        for odd in ("schema/0001_a/b.sql", "schema/0001_a.sql/01_b.sql", "schema/1_a.sql", "schema/0001_a.txt"):
            with self.subTest(odd):
                self.put(odd, "select 1")
                self.refused("a part of a migration is named" if odd.endswith("/b.sql") else "a migration is a file")
                self.tearDown()
                self.setUp()

    def test_several_roots_keep_apart(self):
        self.put("main/t/statements.sql", "-- statement: a\n-- returns: n int4\nselect 1")
        self.put("guest/t/statements.sql", "-- statement: a\n-- returns: n int4\nselect 2")
        self.put("guest/schema/0001_a.sql", "select 3")
        self.put("other/t/statements.sql", "-- statement: b\n-- returns: n int4\nselect ?")
        main, guest, other = (os.path.join(self.sql, n) for n in ("main", "guest", "other"))
        (source, header, _), _ = self.run_tool(("pg", "queen", "queen", main),
                                               ("pg", "guest", "visit", guest),
                                               ("my", "guest", "visit", other))
        self.assertIn("struct pg_statement pg_stmt_a;", header)
        self.assertIn("struct pg_statement pg_stmt_guest_a;", header)
        self.assertIn("struct my_statement my_stmt_guest_b;", header)
        self.assertIn("PG_STMT_GUEST_COUNT = 1", header)
        self.assertIn('pg_stmt_guest_a = {"guest_a",\n    "select 2",\n    0, "i"}', source)
        self.assertIn("enum { GUEST_A_COL_N = 0 };", self.constants)
        self.assertIn("enum { MY_GUEST_B_COL_N = 0 };", self.constants)
        self.assertIn("pg_guest_migrations, 1,\n    0, 0,\n    \"visit\",", source)

    def test_the_depfile_names_files_and_folders(self):
        self.put("push/statements.sql", "-- statement: a\n-- returns: n int4\nselect 1")
        self.put("push/f.sql", "select 1")
        (_, _, deps), _ = self.run_tool()
        for name in ("sql ", "sql/push ", "sql/push/statements.sql", "sql/push/f.sql"):
            self.assertIn(os.path.join(self.tmp.name, name), deps + " ")


if __name__ == "__main__":
    unittest.main()
