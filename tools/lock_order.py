#!/usr/bin/env python3
"""Derive the order in which every procedure of broker/sql takes row locks, and compare it with docs/internals/locking.md.

docs/internals/locking.md gives the order of the tables (its numbered list), the exceptions (procedure, its callers, table and reason) and, for
each procedure that is called from outside, the list of what it takes.  This program reads the procedures, follows their calls,
their triggers and the foreign key of queen.owners, and reports

  - a lock that is waited for while a lock of a later table is held, unless the exceptions name it,
  - several rows locked without "order by",
  - exceptions and lists that are out of date (--write updates the lists).

Text is followed in the order of execution: loops twice, branches each by itself, and a changing statement after the queries in it.
"""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOC = os.path.join(ROOT, "docs", "internals", "locking.md")
SQL = os.path.join(ROOT, "broker", "sql")
BEGIN, END = "<!-- derived by tools/lock_order.py --write -->", "<!-- end of what is derived -->"


class Lock:
    """A statement that takes row locks, or rows of new keys."""

    def __init__(self, how, table, waits, names=(), ordered=True):
        self.how, self.table, self.waits, self.names, self.ordered = how, table, waits, frozenset(names), ordered


class Reader:
    """The body of one procedure as a tree: Lock, ("call", name), ("loop", nodes), ("either", [nodes, ...])."""

    def __init__(self, name, text):
        self.name = name
        body = re.sub(r"--[^\n]*", "", text)
        body = body[body.index("$$") + 2:body.rindex("$$")]
        strings = re.findall(r"'(?:[^']|'')*'", body)
        self.dynamic = [s for s in strings if re.search(
            r"(?i)\b(update|delete from|insert into|lock table)\s+queen\.(queues|lanes|owners|consumers)\b|\bfor (update|share|no key|key)", s)
            and re.search(r"queen\.(queues|lanes|owners|consumers)\b", s)]
        body = re.sub(r"'(?:[^']|'')*'", "''", body).lower()
        self.tokens = re.findall(r"queen\.\w+|\w+|\|\||[^\s\w]", body)
        self.at = 0
        self.scopes, self.call = [self.scope()], None
        self.locks, self.targets = [], set()  # of the statement under way: its locks, the variables that it sets
        self.nodes = self.block(())

    @staticmethod
    def scope():
        return {"tables": [], "words": [], "change": None}

    def peek(self, n=0):
        return self.tokens[self.at + n] if self.at + n < len(self.tokens) else ""

    def block(self, ends):
        nodes = []
        while self.at < len(self.tokens) and self.peek() not in ends:
            self.step(nodes)
        return nodes

    def skip_to(self, *words):
        while self.peek() not in words:
            self.at += 1
        self.at += len(words) if len(words) > 1 else 1

    def branches(self, nodes):
        """if ... then ... elsif ... then ... else ... end if"""
        parts, complete = [], False
        while True:
            self.at += 1  # if, elsif, else
            if self.peek(-1) != "else":
                nodes += self.block(("then",))  # conditions run whatever comes of them
                self.at += 1
            else:
                complete = True
            self.finish_statement(nodes)
            parts.append(self.block(("elsif", "else", "end")))
            if self.peek() == "end":
                self.at += 2
                break
        nodes.append(("either", parts + ([] if complete else [[]])))

    def step(self, nodes):
        word, before = self.peek(), self.peek(-1) if self.at else ""
        scope = self.scopes[-1]
        if word == "if" and before not in ("table", "function", "index"):
            self.branches(nodes)
        elif word == "case":
            self.at += 1
            nodes += self.block(("end",))
            self.at += 1
        elif word == "begin":
            self.at += 1
            nodes += self.block(("exception", "end"))
            if self.peek() == "exception":  # its handlers run or not
                self.at += 1
                nodes.append(("either", [[], self.block(("end",))]))
            self.at += 1
        elif word == "loop":
            self.finish_statement(nodes)
            self.at += 1
            nodes.append(("loop", self.block(("end",))))
            self.at += 2
        elif word == "(":
            self.scopes.append(dict(self.scope(), call=self.call))
            self.call = None
            self.at += 1
        elif word == ")" and len(self.scopes) > 1:
            inner = dict(self.scopes[-1])
            self.finish_statement(nodes)
            self.scopes.pop()
            self.scopes[-1]["words"] += [w for w in inner["words"] if w.startswith(("v_", "p_"))]
            if inner.get("call"):  # after its arguments
                nodes.append(("call", inner["call"]))
            self.at += 1
        elif word == ";":
            self.finish_statement(nodes)
            for lock in self.locks:
                lock.names |= self.targets
            self.scopes, self.locks, self.targets = [self.scope()], [], set()
            self.at += 1
        elif word == "return" and len(self.scopes) == 1 and self.peek(1) not in ("next", "query"):
            nodes.append(("end",))
            self.at += 1
        elif word == "raise" and self.peek(1) == "exception" or word in ("continue", "exit") and self.peek(1) == ";":
            nodes.append(("end",))
            self.at += 2
        elif word == "for" and self.peek(1) in ("update", "share", "no", "key"):
            self.lock(nodes)
        elif word.startswith("queen."):
            self.name_of(word[6:], before, nodes)
        else:
            if word.startswith("v_") and (before == "into" or self.tokens[self.at + 1:self.at + 3] == [":", "="]):
                self.targets.add(word)
            scope["words"].append(word)
            self.at += 1

    def name_of(self, name, before, nodes):
        scope = self.scopes[-1]
        self.at += 1
        if self.peek() == "(" and before != "into":
            self.call = name
        elif before in ("into", "update") or (before == "from" and self.peek(-3) == "delete"):
            how = {"into": "insert", "update": "update", "from": "delete"}[before]
            scope["change"] = (how, name)
        elif before in ("from", "join", ",", "using", "lateral"):
            alias = self.peek(1) if self.peek() == "as" else self.peek()
            scope["tables"].append((name, alias))

    def lock(self, nodes):
        scope = self.scopes[-1]
        self.at += 1
        strong = []
        while self.peek() in ("update", "share", "no", "key"):
            strong.append(self.peek())
            self.at += 1
        of = set()
        if self.peek() == "of":
            self.at += 1
            while re.fullmatch(r"\w+|,", self.peek()) and self.peek() not in ("skip", "nowait", "loop", "limit"):
                of.add(self.peek())
                self.at += 1
        waits = self.peek() not in ("skip", "nowait")
        names = [w for w in scope["words"] if w.startswith(("v_", "p_"))]
        several = "any" in scope["words"] or "in" in scope["words"]
        for table, alias in scope["tables"]:
            if not of or alias in of:
                nodes.append(Lock("lock", table, waits, names, "order" in scope["words"] or not several))
                self.locks.append(nodes[-1])

    def finish_statement(self, nodes):
        change = self.scopes[-1]["change"]
        if change:
            names = [w for w in self.scopes[-1]["words"] if w.startswith(("v_", "p_"))]
            nodes.append(Lock(change[0], change[1], not any(k.table == change[1] for k in self.locks) or change[0] == "insert", names))
            self.scopes[-1]["change"] = None
        self.scopes[-1] = self.scope()


class Checker:
    def __init__(self):
        self.doc = open(DOC).read()
        self.level = {m[2]: int(m[1]) for m in re.finditer(r"^(\d+)\. `queen\.(\w+)`", self.doc, re.M)}
        self.exceptions = {(where, caller, table): False
                           for where, callers, table in re.findall(r"^\| `(\w+)` \| (.+?) \| `queen\.(\w+)` \|", self.doc, re.M)
                           for caller in re.findall(r"\w+|-", callers)}
        self.procs, self.triggers, self.problems = {}, {}, []
        called = set()
        for path in sorted(p for p in glob.glob(os.path.join(SQL, "*", "*.sql"))
                           if os.path.basename(os.path.dirname(p)) != "schema" and "create or replace function" in open(p).read()):
            text = open(path).read()
            reader = Reader(os.path.basename(path)[:-4], text)
            self.procs[reader.name] = reader
            called |= {t[6:] for t in reader.tokens if t.startswith("queen.")} - {reader.name}
            if reader.dynamic:
                self.problems.append("%s: dynamic SQL names an ordered table: %s" % (reader.name, reader.dynamic[0]))
        for path in glob.glob(os.path.join(SQL, "*", "*.sql")):
            for m in re.finditer(r"trigger \w+ (?:after|instead of) (\w+) on queen\.(\w+).*?function queen\.(\w+)", open(path).read(), re.S):
                self.triggers.setdefault((m[1], m[2]), []).append(m[3])
        calls = "".join(open(p).read() for p in glob.glob(os.path.join(SQL, "*", "statements.sql")))
        fired = {f for fs in self.triggers.values() for f in fs}
        self.entries = sorted(n for n in self.procs
                              if n in fired or n not in called or re.search(r"queen\.%s\b" % n, calls))

    def follow(self, nodes, held, stack, taken, locked):
        """held: (level, where) of the latest table locked so far; the same afterwards, None when the path has ended."""
        for node in nodes:
            if isinstance(node, Lock):
                held = self.take(node, held, stack, taken, locked)
            elif node[0] == "end":
                return None
            elif node[0] == "call":
                held = self.call(node[1], held, stack, taken)
            elif node[0] == "loop":
                for _ in range(2):
                    held = self.follow(node[1], held, stack, taken, locked) or held
            else:
                ways = [w for w in [self.follow(part, held, stack, taken, locked) for part in node[1]] if w is not None]
                if not ways:
                    return None
                held = max(ways)
        return held

    def call(self, name, held, stack, taken):
        if name not in self.procs or name in stack:
            return held
        if len(stack) > 40:
            raise SystemExit("calls are too deep: %s" % " ".join(stack))
        proc = self.procs[name]
        entry = held
        ended = self.follow(proc.nodes, held, stack + (name,), taken, {})
        # A return in the middle: what was taken up to there is held as well.
        return max(entry, ended) if ended is not None else max(entry, max((t for t in [self.deepest(name)]), default=entry))

    def deepest(self, name, seen=()):
        """The latest table that a procedure or one that it calls locks."""
        def walk(nodes):
            best = (0, "")
            for node in nodes:
                if isinstance(node, Lock):
                    best = max(best, (self.level.get(node.table, 0), name))
                elif node[0] == "call" and node[1] in self.procs and node[1] not in seen:
                    best = max(best, self.deepest(node[1], seen + (name,)))
                elif node[0] == "loop":
                    best = max(best, walk(node[1]))
                elif node[0] == "either":
                    best = max([best] + [walk(part) for part in node[1]])
            return best
        return walk(self.procs[name].nodes)

    def take(self, lock, held, stack, taken, locked):
        level, where = self.level.get(lock.table), stack[-1]
        known = lock.how in ("update", "delete") and lock.names and lock.names & locked.get(lock.table, frozenset())
        if level is not None:
            if lock.how == "lock":
                locked[lock.table] = locked.get(lock.table, frozenset()) | lock.names
                if lock.waits and not lock.ordered:
                    self.problem("%s locks several rows of queen.%s without an order" % (where, lock.table))
            if lock.waits and not known and level < held[0]:
                key = (where, stack[-2] if len(stack) > 1 else "-", lock.table)
                if key in self.exceptions:
                    self.exceptions[key] = True
                else:
                    self.problem("%s, called by %s: %s of queen.%s (%d) while %s has locked a table of level %d"
                                 % (where, key[1], lock.how, lock.table, level, held[1], held[0]))
            label = {"insert": "new %s", "lock": "%s" if lock.waits else "%s (skipping)"}.get(lock.how, "%s") % lock.table
            if not known and label not in taken:
                taken.append(label)
            held = max(held, (level, where))
        if lock.how == "insert" and lock.table == "owners" and "lanes" not in locked:  # its foreign key
            held = self.take(Lock("lock", "lanes", True), held, stack, taken, locked)
        if lock.how == "delete" and lock.table == "lanes":
            held = self.take(Lock("delete", "owners", True), held, stack, taken, locked)
        for function in self.triggers.get((lock.how, lock.table), []):
            held = self.call(function, held, stack, taken)
        return held

    def problem(self, text):
        if text not in self.problems:
            self.problems.append(text)

    def run(self, write):
        lines = ["| procedure | takes, in this order |", "| --- | --- |"]
        for name in self.entries:
            taken = []
            self.call(name, (0, ""), (), taken)
            if taken:
                lines.append("| `%s` | %s |" % (name, ", ".join(taken)))
        for key, used in self.exceptions.items():
            if not used:
                self.problem("docs/internals/locking.md: the exception for %s, called by %s, and queen.%s is not needed" % key)
        if BEGIN not in self.doc:
            raise SystemExit("docs/internals/locking.md has no line %s" % BEGIN)
        start, stop = self.doc.index(BEGIN) + len(BEGIN), self.doc.index(END)
        want = "\n" + "\n".join(lines) + "\n"
        have = self.doc[start:stop]
        if write and have != want:
            with open(DOC, "w") as f:
                f.write(self.doc[:start] + want + self.doc[stop:])
        elif have != want:
            for line in sorted(set(lines) ^ set(have.strip().split("\n"))):
                self.problem("docs/internals/locking.md %s: %s" % ("lacks" if line in lines else "has", line))
            self.problem("run tools/lock_order.py --write after checking what has changed")
        return self.problems


if __name__ == "__main__":
    problems = Checker().run("--write" in sys.argv[1:])
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)
