// spool.c and its kin: what is answered is there, in order, once; what is torn is cut.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/clock.h"
#include "base/log.h"
#include "spool/spool.h"

static uv_loop_t loop;
static struct mailbox mailbox;
static char dir[64];
static struct spool *spool;
static struct spool_conf conf;
static struct spool_read window;
static bool sync_fails, disk_is_full;
static unsigned n_syncs, n_read;

// ---- the disk ----

static ssize_t fake_write(int fd, const void *bytes, size_t n)
{
    if (!disk_is_full)
        return write(fd, bytes, n);
    if (n > 10)
        return write(fd, bytes, 10); // and then no more
    errno = ENOSPC;
    return -1;
}

static int fake_sync(int fd)
{
    (void)fd;
    n_syncs++;
    if (!sync_fails)
        return 0;
    errno = EIO;
    return -1;
}

static const struct spool_disk disk = {fake_write, fake_sync};

static void on_closed(void *ctx) { *(bool *)ctx = true; }

static void open_spool(void)
{
    struct fault f = {0};
    int rc = spool_open(&spool, &conf, &f);

    if (rc != 0)
        fail_msg("%s", f.text);
}

static void reopen(void)
{
    spool_release(&window);
    spool_close(spool);
    open_spool();
}

static int setup(void **state)
{
    (void)state;
    log_setup(LOG_OFF, LOG_TEXT);
    strcpy(dir, "/tmp/queen-spool-XXXXXX");
    if (!mkdtemp(dir) || uv_loop_init(&loop) != 0 || mailbox_open(&mailbox, &loop) != 0)
        return -1;
    conf = (struct spool_conf){.dir = dir,
                               .events_per_file = 1000,
                               .idle_ms = 200,
                               .max_bytes = 1 << 20,
                               .disk = &disk,
                               .by_hand = true};
    sync_fails = disk_is_full = false;
    n_syncs = n_read = 0;
    window = (struct spool_read){.max_records = 100, .to = &mailbox};
    clock_freeze(1000000, 1700000000ull * 1000000);
    open_spool();
    return 0;
}

static int teardown(void **state)
{
    char command[128];
    bool closed = false;

    (void)state;
    spool_release(&window);
    spool_close(spool);
    mailbox_close(&mailbox, on_closed, &closed);
    uv_run(&loop, UV_RUN_DEFAULT);
    mailbox_deinit(&mailbox);
    clock_release();
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) | uv_loop_close(&loop);
}

// ---- what tests do ----

struct given {
    struct spool_write w;
    struct spool_record records[8];
    char payload[8][32];
    unsigned times;
};

static void on_written(struct mailbox_item *item) { ((struct given *)item->owner)->times++; }

static void on_read(struct mailbox_item *item)
{
    (void)item;
    n_read++;
}

static void give(struct given *g, const char *partition, unsigned from, unsigned n)
{
    *g = (struct given){.w = {.records = g->records, .n = n, .to = &mailbox}};
    g->w.mail = (struct mailbox_item){.deliver = on_written, .owner = g};
    for (unsigned i = 0; i < n; i++) {
        snprintf(g->payload[i], sizeof g->payload[i], "%u", from + i);
        g->records[i] = (struct spool_record){.queue = SPAN("q"),
                                              .partition = span_of(partition),
                                              .payload = span_of(g->payload[i])};
    }
    spool_append(spool, &g->w);
}

static void turn(void)
{
    spool_turn(spool);
    uv_run(&loop, UV_RUN_NOWAIT);
}

static void put(const char *partition, unsigned from, unsigned n)
{
    struct given g;

    give(&g, partition, from, n);
    turn();
    assert_int_equal(g.times, 1);
    assert_int_equal(g.w.status, 0);
}

static void next(void)
{
    unsigned before = n_read;

    window.mail = (struct mailbox_item){.deliver = on_read};
    spool_next(spool, &window);
    turn();
    assert_int_equal(n_read, before + 1);
}

// The next window holds the numbers from..from+n-1, in this order.
static void expect(unsigned from, unsigned n)
{
    char text[32];

    next();
    assert_int_equal(window.status, 0);
    assert_int_equal(window.n, n);
    for (unsigned i = 0; i < n; i++) {
        snprintf(text, sizeof text, "%u", from + i);
        assert_true(span_eq(window.records[i].payload, span_of(text)));
    }
}

// Files in a folder whose names end so; the last one's path into path.
static unsigned files(const char *folder, const char *end, char path[300])
{
    char full[128];
    unsigned n = 0;
    struct dirent *e;

    snprintf(full, sizeof full, "%s%s", dir, folder);
    DIR *d = opendir(full);
    while (d && (e = readdir(d))) {
        size_t len = strlen(e->d_name), m = strlen(end);
        if (len > m && strcmp(e->d_name + len - m, end) == 0) {
            n++;
            if (path)
                snprintf(path, 300, "%s/%.100s", full, e->d_name);
        }
    }
    if (d)
        closedir(d);
    return n;
}

static off_t size_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void flip(const char *path, long at)
{
    FILE *f = fopen(path, "r+");
    int c;

    assert_non_null(f);
    fseek(f, at, SEEK_SET);
    c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 0x40, f);
    fclose(f);
}

// ---- the tests ----

static void records_come_out_in_order_and_once(void **state)
{
    (void)state;
    put("p", 0, 3);
    put("p", 3, 2);
    assert_int_equal(spool_pending(spool), 5);
    assert_true(spool_holds(spool, SPAN("q"), SPAN("p")));
    assert_false(spool_holds(spool, SPAN("q"), SPAN("other")));
    expect(0, 5);
    assert_true(spool_holds(spool, SPAN("q"), SPAN("p"))); // not settled yet
    expect(0, 0);
    assert_false(spool_holds(spool, SPAN("q"), SPAN("p")));
    assert_int_equal(spool_pending(spool), 0);
    assert_int_equal(files("", ".buf", NULL) + files("", ".tmp", NULL), 0);
    struct spool_stats stats;
    spool_stats(spool, &stats);
    assert_int_equal(stats.bytes, 0);
}

static void test_many_requests_share_one_sync(void **state)
{
    struct given g[5];

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        give(&g[i], "p", i, 1);
    assert_int_equal(n_syncs, 0);
    turn();
    assert_int_equal(n_syncs, 1);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(g[i].times, 1);
    expect(0, 5);
}

static void test_nothing_is_answered_when_the_sync_fails(void **state)
{
    struct given g;

    (void)state;
    put("p", 0, 2);
    sync_fails = true;
    give(&g, "p", 2, 2);
    turn();
    assert_int_equal(g.w.status, QE_BUFFER_FAILED);
    assert_int_equal(spool_pending(spool), 2);
    struct spool_stats stats;
    spool_stats(spool, &stats);
    assert_false(stats.healthy);
    sync_fails = false;
    clock_advance_us(1100000); // the disk is tried once a second
    turn();
    spool_stats(spool, &stats);
    assert_true(stats.healthy); // without a write that has to be stored
    put("p", 2, 1);
    reopen();
    expect(0, 2);
    expect(2, 1); // a new file
    expect(0, 0);
}

static void test_a_full_disk_is_a_full_buffer(void **state)
{
    struct given g;

    (void)state;
    put("p", 0, 1);
    disk_is_full = true;
    give(&g, "p", 1, 4);
    turn();
    assert_int_equal(g.w.status, QE_BUFFER_FULL);
    disk_is_full = false;
    reopen();
    expect(0, 1);
    expect(0, 0);
}

static void test_the_size_is_limited(void **state)
{
    struct given g;
    struct spool_stats stats;

    (void)state;
    conf.max_bytes = 200;
    reopen();
    put("p", 0, 2);
    give(&g, "p", 2, 8);
    uv_run(&loop, UV_RUN_NOWAIT); // refused without the disk
    assert_int_equal(g.w.status, QE_BUFFER_FULL);
    assert_int_equal(g.times, 1);
    spool_stats(spool, &stats);
    assert_int_equal(stats.refused, 8);
    expect(0, 2);
    expect(0, 0); // room again
    put("p", 2, 3);
}

static void test_files_are_rotated_by_number_and_by_idleness(void **state)
{
    (void)state;
    conf.events_per_file = 3;
    reopen();
    put("p", 0, 3);
    assert_int_equal(files("", ".buf", NULL), 1);
    put("p", 3, 1);
    assert_int_equal(files("", ".tmp", NULL), 1);
    clock_advance_us(199000);
    turn();
    assert_int_equal(files("", ".tmp", NULL), 1);
    clock_advance_us(2000);
    turn();
    assert_int_equal(files("", ".tmp", NULL), 0);
    assert_int_equal(files("", ".buf", NULL), 2);
    expect(0, 3);
    expect(3, 1);
    expect(0, 0);
}

static void test_names_rise_when_the_clock_steps_back(void **state)
{
    (void)state;
    put("p", 0, 1);
    reopen();
    clock_freeze(1000000, 1600000000ull * 1000000);
    put("p", 1, 1);
    reopen();
    expect(0, 1);
    expect(1, 1);
}

static void test_an_earlier_life_is_replayed_from_where_it_came_to(void **state)
{
    (void)state;
    window.max_records = 2;
    put("p", 0, 5);
    expect(0, 2);
    expect(2, 2); // settles 0 and 1
    reopen();
    assert_int_equal(spool_pending(spool), 3);
    assert_true(spool_holds(spool, SPAN("q"), SPAN("p")));
    window.max_records = 100;
    expect(2, 3);
    expect(0, 0);
}

static void test_a_torn_tail_is_cut_at_every_byte(void **state)
{
    char path[300], copy[400];

    (void)state;
    put("p", 0, 3);
    spool_close(spool);
    assert_int_equal(files("", ".buf", path), 1);
    off_t whole = size_of(path), each = (whole - SPOOL_HEADER_BYTES) / 3;
    char *bytes = malloc((size_t)whole);
    FILE *f = fopen(path, "r");
    assert_int_equal(fread(bytes, 1, (size_t)whole, f), whole);
    fclose(f);
    unlink(path);
    snprintf(copy, sizeof copy, "%s.tmp", path);
    for (off_t n = 0; n <= whole; n++) {
        f = fopen(copy, "w");
        fwrite(bytes, 1, (size_t)n, f);
        fclose(f);
        open_spool();
        unsigned good =
            n < SPOOL_HEADER_BYTES ? 0 : (unsigned)((n - SPOOL_HEADER_BYTES) / each);
        assert_int_equal(spool_pending(spool), good);
        expect(0, good);
        if (good > 0)
            expect(0, 0);
        assert_int_equal(files("", ".buf", NULL) + files("/failed", ".damaged", NULL), 0);
        spool_release(&window);
        spool_close(spool);
    }
    free(bytes);
    open_spool();
}

static void test_a_damaged_record_is_kept_for_people_and_the_rest_goes_on(void **state)
{
    char path[300];

    (void)state;
    put("p", 0, 3);
    spool_close(spool);
    files("", ".buf", path);
    off_t each = (size_of(path) - SPOOL_HEADER_BYTES) / 3;
    flip(path, SPOOL_HEADER_BYTES + each + 20);
    open_spool();
    assert_int_equal(spool_pending(spool), 2);
    expect(0, 1);
    expect(2, 1);
    expect(0, 0);
    assert_int_equal(files("/failed", ".damaged", NULL), 1);
    assert_int_equal(files("/failed", ".txt", NULL), 1);
    assert_int_equal(files("", ".buf", NULL), 0);
}

static void test_a_damaged_length_costs_the_rest_of_the_file_but_not_the_next(void **state)
{
    char path[300];

    (void)state;
    put("p", 0, 3);
    reopen();
    files("", ".buf", path);
    put("p", 3, 1);
    spool_release(&window);
    spool_close(spool);
    flip(path, SPOOL_HEADER_BYTES);
    open_spool();
    expect(3, 1);
    expect(0, 0);
    struct spool_stats stats;
    spool_stats(spool, &stats);
    assert_int_equal(stats.failed_files, 1);
    assert_int_equal(stats.pending, 0);
}

static void test_a_poison_record_goes_to_failed_and_can_be_tried_again(void **state)
{
    char path[300], to[400];

    (void)state;
    put("p", 0, 3);
    expect(0, 3);
    spool_bury(&window, 1, "the database said no");
    expect(0, 0);
    assert_int_equal(files("/failed", ".buf", path), 1);
    snprintf(to, sizeof to, "%s/%s", dir, strrchr(path, '/') + 1);
    assert_int_equal(rename(path, to), 0);
    reopen();
    expect(1, 1);
}

static void test_foreign_files_are_left_alone(void **state)
{
    char path[300];

    (void)state;
    snprintf(path, sizeof path, "%s/qos0_x.buf", dir);
    FILE *f = fopen(path, "w");
    fputs("something else entirely, longer than a header", f);
    fclose(f);
    reopen();
    assert_int_equal(files("/failed", ".buf", NULL), 1);
    struct spool_stats stats;
    spool_stats(spool, &stats);
    assert_int_equal(stats.failed_qos0, 1);
    expect(0, 0);
}

static void test_a_directory_has_one_owner(void **state)
{
    struct spool *other;
    struct fault f = {0};

    (void)state;
    assert_int_not_equal(spool_open(&other, &conf, &f), 0);
    assert_non_null(strstr(f.text, "in use by another process"));
}

static void test_the_thread_does_it_by_itself(void **state)
{
    struct given g;

    (void)state;
    conf.by_hand = false;
    conf.idle_ms = 10;
    clock_release();
    reopen();
    int notes = inotify_init1(IN_CLOEXEC);
    assert_true(inotify_add_watch(notes, dir, IN_CREATE | IN_MOVED_TO) >= 0);
    give(&g, "p", 0, 2);
    while (g.times == 0)
        uv_run(&loop, UV_RUN_ONCE);
    while (files("", ".buf", NULL) == 0) {
        char note[4096] __attribute__((aligned(8)));
        assert_true(read(notes, note, sizeof note) > 0);
    }
    close(notes);
    window.mail = (struct mailbox_item){.deliver = on_read};
    spool_next(spool, &window);
    while (n_read == 0)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(window.n, 2);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(records_come_out_in_order_and_once),
        T(test_many_requests_share_one_sync),
        T(test_nothing_is_answered_when_the_sync_fails),
        T(test_a_full_disk_is_a_full_buffer),
        T(test_the_size_is_limited),
        T(test_files_are_rotated_by_number_and_by_idleness),
        T(test_names_rise_when_the_clock_steps_back),
        T(test_an_earlier_life_is_replayed_from_where_it_came_to),
        T(test_a_torn_tail_is_cut_at_every_byte),
        T(test_a_damaged_record_is_kept_for_people_and_the_rest_goes_on),
        T(test_a_damaged_length_costs_the_rest_of_the_file_but_not_the_next),
        T(test_a_poison_record_goes_to_failed_and_can_be_tried_again),
        T(test_foreign_files_are_left_alone),
        T(test_a_directory_has_one_owner),
        T(test_the_thread_does_it_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
