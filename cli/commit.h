// commit.h: the commit that the program was built from; tools/commit.sh finds it. "unknown"
// without git.
#ifndef QUEEN_CLI_COMMIT_H
#define QUEEN_CLI_COMMIT_H

extern const char cli_commit[];

#endif
